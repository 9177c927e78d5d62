// Runs a model three times in the session of the lines of docs/how-to/cpp.md, which stand in for OPTIONS and BINDING, and
// writes what comes out. The state that comes out of a run goes into the next.
//   Train.exe MODEL FEEDS STATE BOUND OUT TRACE
// FEEDS has an input a line: name, element type's number, rank, dimensions, file of its bytes. STATE has an output a line,
// and the input that it becomes. BOUND is 1 if the output is written over the input, and 0 if both are held.
using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using Microsoft.ML.OnnxRuntime;
using Microsoft.ML.OnnxRuntime.Tensors;

static class Train
{
    static void Main(string[] given)
    {
        OPTIONS
        options.IntraOpNumThreads = 1;
        options.ProfileOutputPathPrefix = given[5];  // read as the next line is
        options.EnableProfiling = true;
        using (var session = new InferenceSession(given[0], options))
        using (var results = File.Create(given[4]))
        {
            var inputs = File.ReadAllLines(given[1]).Select(line => line.Split(' ')).ToDictionary(w => w[0], Value);
            var state = File.ReadAllLines(given[2]).Select(line => line.Split(' ')).ToDictionary(w => w[0], w => w[1]);
            var inPlace = given[3] == "1" ? state : new Dictionary<string, string>();
            var others = session.OutputNames.Where(name => !inPlace.ContainsKey(name)).ToList();
            for (int run = 0; run < 3; run++)
            {
                BINDING
                var names = binding.GetOutputNames();
                using (var made = binding.GetOutputValues())
                {
                    var byName = Enumerable.Range(0, names.Length).ToDictionary(k => names[k], k => made.ElementAt(k));
                    foreach (var name in names.OrderBy(name => name, StringComparer.Ordinal))  // whatever was bound first
                        Write(results, byName[name].GetTensorMutableRawData());
                    foreach (var pair in state.Where(pair => !inPlace.ContainsKey(pair.Key)))
                        byName[pair.Key].GetTensorMutableRawData().CopyTo(inputs[pair.Value].GetTensorMutableRawData());
                }
                binding.Dispose();
            }
            Console.WriteLine(session.EndProfiling());
        }
    }

    static OrtValue Value(string[] words)
    {
        int rank = int.Parse(words[2]);
        var shape = words.Skip(3).Take(rank).Select(long.Parse).ToArray();
        var type = (TensorElementType)int.Parse(words[1]);
        var value = OrtValue.CreateAllocatedTensorValue(OrtAllocator.DefaultInstance, type, shape);
        File.ReadAllBytes(words[3 + rank]).AsSpan().CopyTo(value.GetTensorMutableRawData());
        return value;
    }

    static void Write(Stream results, Span<byte> bytes)
    {
        var array = bytes.ToArray();
        results.Write(array, 0, array.Length);
    }
}
