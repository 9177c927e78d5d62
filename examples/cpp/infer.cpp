// Runs a model a few times in the session of the lines of docs/how-to/cpp.md, which stand in for OPTIONS, PLACES and RUN,
// and writes what comes out of the last run.
//   infer MODEL FEEDS OUT PLACES THREADS RUNS
// FEEDS has an input a line: name, element type's number, rank, dimensions, file of its bytes. What is printed: by how many
// kB the process grew, its session included, the fastest run after the first in microseconds, and how many requests were
// not as planned.
#include <onnxruntime_cxx_api.h>
#include "remat_places.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <iostream>
#include <iterator>
#include <list>
#include <sstream>
#include <string>
#include <vector>

static std::vector<char> content(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// kB that the kernel counts for this process: "VmRSS:" now, "VmHWM:" at most since `forget`
static long counted(const std::string &which) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.compare(0, which.size(), which) == 0) return std::stol(line.substr(which.size()));
  return 0;
}

static void forget() { std::ofstream("/proc/self/clear_refs") << "5"; }

static size_t bytes_of(const Ort::Value &value) {
  auto info = value.GetTensorTypeAndShapeInfo();
  size_t width = info.GetElementType() == ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64 ? 8 : 4;  // or float
  return info.GetElementCount() * width;
}

int main(int, char **given) {
  Ort::Env env(ORT_LOGGING_LEVEL_ERROR, "infer");
  Ort::MemoryInfo cpu = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
  std::list<std::vector<char>> held;
  std::list<std::string> names;
  std::vector<const char *> inputs, outputs;
  std::vector<Ort::Value> values;
  std::ifstream feeds(given[2]);
  for (std::string line; std::getline(feeds, line);) {
    std::istringstream words(line);
    std::string name, file;
    int type, rank;
    words >> name >> type >> rank;
    std::vector<int64_t> shape(rank);
    for (auto &size : shape) words >> size;
    words >> file;
    held.push_back(content(file));
    names.push_back(name);
    inputs.push_back(names.back().c_str());
    values.push_back(Ort::Value::CreateTensor(cpu, held.back().data(), held.back().size(), shape.data(), shape.size(),
                                              static_cast<ONNXTensorElementDataType>(type)));
  }
  forget();
  const long before = counted("VmRSS:");
  OPTIONS
  options.SetIntraOpNumThreads(std::stoi(given[5]));
  PLACES
  Ort::Session session(env, given[1], options);
  Ort::AllocatorWithDefaultOptions allocator;
  for (size_t k = 0; k < session.GetOutputCount(); k++) {
    names.push_back(session.GetOutputNameAllocated(k, allocator).get());
    outputs.push_back(names.back().c_str());
  }
  std::vector<Ort::Value> found;
  long long fastest = 0;
  for (int run = 0; run < std::stoi(given[6]); run++) {
    found.clear();
    const auto begun = std::chrono::steady_clock::now();
    {
      RUN
      found = session.Run(Ort::RunOptions{}, inputs.data(), values.data(), values.size(), outputs.data(), outputs.size());
    }
    const auto took = std::chrono::steady_clock::now() - begun;
    const long long each = std::chrono::duration_cast<std::chrono::microseconds>(took).count();
    if (run) fastest = run == 1 ? each : std::min(fastest, each);
  }
  const long grew = counted("VmHWM:") - before;
  std::ofstream results(given[3], std::ios::binary);
  for (auto &value : found)
    results.write(static_cast<const char *>(value.GetTensorRawData()), bytes_of(value));
  int64_t missed = 0, bytes = 0;
  remat_places_missed(places.get(), &missed, &bytes);
  std::cout << grew << " " << fastest << " " << missed << std::endl;
}
