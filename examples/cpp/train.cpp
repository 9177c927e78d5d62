// Runs a model twice in the session of the lines of docs/how-to/sessions.md, which stand in for OPTIONS, and writes what comes out.
//   train MODEL FEEDS OUT TRACE
// FEEDS has an input a line: name, element type's number, rank, dimensions, file of its bytes.
#include <onnxruntime_cxx_api.h>

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

int main(int, char **given) {
  Ort::Env env(ORT_LOGGING_LEVEL_ERROR, "train");
  OPTIONS
  options.SetIntraOpNumThreads(1);
  options.EnableProfiling(given[4]);
  Ort::Session session(env, given[1], options);

  Ort::MemoryInfo cpu = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
  std::list<std::vector<char>> held;
  std::vector<std::string> names;
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
    names.push_back(name);
    held.push_back(content(file));
    values.push_back(Ort::Value::CreateTensor(cpu, held.back().data(), held.back().size(), shape.data(), shape.size(),
                                              static_cast<ONNXTensorElementDataType>(type)));
  }

  Ort::AllocatorWithDefaultOptions allocator;
  std::vector<std::string> wanted;
  for (size_t k = 0; k < session.GetOutputCount(); k++)
    wanted.push_back(session.GetOutputNameAllocated(k, allocator).get());
  std::vector<const char *> in, out;
  for (auto &name : names) in.push_back(name.c_str());
  for (auto &name : wanted) out.push_back(name.c_str());

  std::ofstream results(given[3], std::ios::binary);
  for (int run = 0; run < 2; run++) {
    auto made = session.Run(Ort::RunOptions{}, in.data(), values.data(), in.size(), out.data(), out.size());
    for (auto &value : made) {
      auto info = value.GetTensorTypeAndShapeInfo();
      size_t width = info.GetElementType() == ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64 ? 8 : 4;  // or float
      results.write(static_cast<const char *>(value.GetTensorRawData()), info.GetElementCount() * width);
    }
  }
  std::cout << session.EndProfilingAllocated(allocator).get() << std::endl;
}
