#include "tools/graft/tensor_files.h"

#include <algorithm>

#include "core/base/error.h"
#include "io/npy.h"
#include "io/onnx.h"
#include "tools/graft/pairs.h"

namespace graft::cli {

std::string file_stem(const std::string& name) {
  std::string stem = name;
  std::ranges::replace_if(
      stem,
      [](char c) {
        const bool is_plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                              (c >= 'A' && c <= 'Z') || c == '_' || c == '-' || c == '.';
        return !is_plain;
      },
      '_');
  return stem.empty() || stem.front() == '.' ? "_" + stem : stem;
}

Tensor load_tensor_file(const std::filesystem::path& path) {
  if (path.extension() == ".npy") return npy::load(path);
  if (path.extension() == ".pb") return onnx::load_tensor(path).tensor;
  fail(ErrorKind::argument, path.string(), ": wanted a .npy or .pb file");
}

namespace {

/// Loads what arguments of the form NAME=FILE name, by load(name, file).
template <class T, class Load>
std::map<std::string, T> load_named(const std::vector<std::string>& arguments, const Load& load) {
  std::map<std::string, T> loaded;
  for (const std::string& argument : arguments) {
    const auto [name, file] = split_pair("--input", argument, "NAME=FILE");
    if (!loaded.emplace(name, load(name, file)).second) {
      fail(ErrorKind::argument, "--input '", name, "' comes twice");
    }
  }
  return loaded;
}

}  // namespace

std::map<std::string, Tensor> load_named_tensors(const std::vector<std::string>& arguments) {
  return load_named<Tensor>(arguments, [](const std::string&, const std::string& file) {
    return load_tensor_file(file);
  });
}

std::map<std::string, Datum> load_named_data(const std::vector<std::string>& arguments,
                                             const Graph& graph) {
  return load_named<Datum>(arguments, [&](const std::string& name, const std::string& file) {
    const Value* const value = graph.find(name);
    const bool is_container = value != nullptr && value->type().is_container;
    return is_container ? onnx::load_data(file, *value).datum : Datum(load_tensor_file(file));
  });
}

}  // namespace graft::cli
