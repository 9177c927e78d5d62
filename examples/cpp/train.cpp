// Runs a model three times in the session of the lines of docs/how-to/cpp.md, which stand in for OPTIONS and BINDING, and
// writes what comes out. The state that comes out of a run goes into the next.
//   train MODEL FEEDS STATE BOUND OUT TRACE PLACES
// FEEDS has an input a line: name, element type's number, rank, dimensions, file of its bytes. STATE has an output a line,
// and the input that it becomes. BOUND is 1 if the output is written over the input, and 0 if both are held. Compiled
// WITH_PLACES, values lie where the file of PLACES says; else a trace is written. What is printed: the name of the trace,
// and then by how many kB the process grew in its runs, and how many requests were not as planned.
#include <onnxruntime_cxx_api.h>
#ifdef WITH_PLACES
#include "remat_places.h"
#endif

#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <list>
#include <map>
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
  Ort::Env env(ORT_LOGGING_LEVEL_ERROR, "train");
  OPTIONS
  options.SetIntraOpNumThreads(1);
#ifdef WITH_PLACES
  PLACES
#else
  options.EnableProfiling(given[6]);
#endif
  Ort::Session session(env, given[1], options);

  Ort::MemoryInfo cpu = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
  std::list<std::vector<char>> held;
  std::map<std::string, Ort::Value> inputs;
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
    inputs.emplace(name, Ort::Value::CreateTensor(cpu, held.back().data(), held.back().size(), shape.data(),
                                                  shape.size(), static_cast<ONNXTensorElementDataType>(type)));
  }
  std::map<std::string, std::string> state, in_place;
  std::ifstream pairs(given[3]);
  for (std::string output, input; pairs >> output >> input;) state[output] = input;
  if (given[4] == std::string("1")) in_place = state;

  Ort::AllocatorWithDefaultOptions allocator;
  std::vector<std::string> others;
  for (size_t k = 0; k < session.GetOutputCount(); k++) {
    std::string name = session.GetOutputNameAllocated(k, allocator).get();
    if (!in_place.count(name)) others.push_back(name);
  }
  std::ofstream results(given[5], std::ios::binary);
  forget();
  const long before = counted("VmRSS:");
  for (int run = 0; run < 3; run++) {
#ifdef WITH_PLACES
    RUN
#endif
    BINDING
    auto names = binding.GetOutputNames();
    auto made = binding.GetOutputValues();
    std::map<std::string, Ort::Value *> by_name;  // in one order, whatever was bound first
    for (size_t k = 0; k < names.size(); k++) by_name[names[k]] = &made[k];
    for (auto &[name, value] : by_name) results.write(static_cast<const char *>(value->GetTensorRawData()), bytes_of(*value));
    for (auto &[output, input] : state)
      if (!in_place.count(output))
        std::memcpy(inputs.at(input).GetTensorMutableRawData(), by_name[output]->GetTensorRawData(), bytes_of(*by_name[output]));
  }
  int64_t missed = 0;
#ifdef WITH_PLACES
  int64_t bytes = 0;
  remat_places_missed(places.get(), &missed, &bytes);
  std::cout << "-" << std::endl;
#else
  std::cout << session.EndProfilingAllocated(allocator).get() << std::endl;
#endif
  std::cout << counted("VmHWM:") - before << " " << missed << std::endl;
}
