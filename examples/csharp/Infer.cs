// Runs a model a few times in the session of the lines of docs/how-to/cpp.md, which stand in for OPTIONS, PLACES, RUN and
// DECLARED, and writes what comes out of the last run.
//   Infer.exe MODEL FEEDS OUT PLACES THREADS RUNS
// FEEDS has an input a line: name, element type's number, rank, dimensions, file of its bytes. What is printed: by how many
// kB the process grew, its session included, the fastest run after the first in microseconds, and how many requests were
// not as planned.
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.IO;
using System.Linq;
using System.Runtime.InteropServices;
using Microsoft.ML.OnnxRuntime;
using Microsoft.ML.OnnxRuntime.Tensors;

static class Infer
{
    static void Main(string[] given)
    {
        var feeds = File.ReadAllLines(given[1]).Select(line => line.Split(' ')).ToDictionary(w => w[0], Value);
        File.WriteAllText("/proc/self/clear_refs", "5");  // the highest so far is what there is now
        long before = Counted("VmRSS:"), fastest = long.MaxValue;
        OPTIONS
        options.IntraOpNumThreads = int.Parse(given[4]);
        PLACES
        using (var session = new InferenceSession(given[0], options))
        {
            IDisposableReadOnlyCollection<OrtValue> found = null;
            for (int number = 0; number < int.Parse(given[5]); number++)
            {
                found?.Dispose();
                var watch = Stopwatch.StartNew();
                RUN
                found = session.Run(new RunOptions(), feeds, session.OutputNames);
                RematPlaces.remat_places_end();
                if (number > 0) fastest = Math.Min(fastest, watch.ElapsedTicks * 1000000 / Stopwatch.Frequency);
            }
            long grew = Counted("VmHWM:") - before;
            using (var results = File.Create(given[2]))
                foreach (var value in found)
                {
                    var bytes = value.GetTensorMutableRawData().ToArray();
                    results.Write(bytes, 0, bytes.Length);
                }
            found.Dispose();
            Missed.remat_places_missed(places, out long missed, out _);
            Console.WriteLine($"{grew} {fastest} {missed}");
        }
    }

    // kB that the kernel counts for this process: "VmRSS:" now, "VmHWM:" at most since it forgot
    static long Counted(string which) =>
        long.Parse(File.ReadAllLines("/proc/self/status").First(line => line.StartsWith(which)).Split(' ').Reverse().ElementAt(1));

    static OrtValue Value(string[] words)
    {
        int rank = int.Parse(words[2]);
        var shape = words.Skip(3).Take(rank).Select(long.Parse).ToArray();
        var type = (TensorElementType)int.Parse(words[1]);
        var value = OrtValue.CreateAllocatedTensorValue(OrtAllocator.DefaultInstance, type, shape);
        File.ReadAllBytes(words[3 + rank]).AsSpan().CopyTo(value.GetTensorMutableRawData());
        return value;
    }
}

static class Missed
{
    [DllImport("remat_places")]
    public static extern void remat_places_missed(IntPtr places, out long requests, out long bytes);
}

DECLARED
