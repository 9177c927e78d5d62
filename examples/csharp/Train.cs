// Runs a model twice in the session of the lines of docs/how-to/sessions.md, which stand in for OPTIONS, and writes what comes out.
//   Train.exe MODEL FEEDS OUT TRACE
// FEEDS has an input a line: name, element type's number, rank, dimensions, file of its bytes.
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
        options.ProfileOutputPathPrefix = given[3];  // read as the next line is
        options.EnableProfiling = true;
        using (var session = new InferenceSession(given[0], options))
        using (var results = File.Create(given[2]))
        {
            var feeds = File.ReadAllLines(given[1]).Select(line => Feed(line.Split(' '))).ToList();
            var wanted = session.OutputNames.ToList();
            for (int run = 0; run < 2; run++)
                using (var made = session.Run(feeds, wanted))
                    foreach (var value in made)
                        Write(results, value);
            Console.WriteLine(session.EndProfiling());
        }
    }

    static NamedOnnxValue Feed(string[] words)
    {
        int rank = int.Parse(words[2]);
        var shape = words.Skip(3).Take(rank).Select(int.Parse).ToArray();
        byte[] bytes = File.ReadAllBytes(words[3 + rank]);
        if ((TensorElementType)int.Parse(words[1]) == TensorElementType.Int64)
            return Made<long>(words[0], bytes, 8, shape);
        return Made<float>(words[0], bytes, 4, shape);
    }

    static NamedOnnxValue Made<T>(string name, byte[] bytes, int width, int[] shape)
    {
        var numbers = new T[bytes.Length / width];
        Buffer.BlockCopy(bytes, 0, numbers, 0, bytes.Length);
        return NamedOnnxValue.CreateFromTensor(name, new DenseTensor<T>(numbers, shape));
    }

    static void Write(Stream results, DisposableNamedOnnxValue value)
    {
        if (value.ElementType == TensorElementType.Int64)
            Bytes(results, value.AsTensor<long>().ToArray(), 8);
        else
            Bytes(results, value.AsTensor<float>().ToArray(), 4);
    }

    static void Bytes<T>(Stream results, T[] numbers, int width)
    {
        var bytes = new byte[numbers.Length * width];
        Buffer.BlockCopy(numbers, 0, bytes, 0, bytes.Length);
        results.Write(bytes, 0, bytes.Length);
    }
}
