#include "tools/graft/tensor_files.h"

#include "core/base/error.h"
#include "io/npy.h"
#include "io/onnx.h"

namespace graft::cli {

Tensor load_tensor_file(const std::filesystem::path& path) {
  if (path.extension() == ".npy") return npy::load(path);
  if (path.extension() == ".pb") return onnx::load_tensor(path).tensor;
  fail(ErrorKind::argument, path.string(), ": wanted a .npy or .pb file");
}

std::map<std::string, Tensor> load_named_tensors(const std::vector<std::string>& arguments) {
  std::map<std::string, Tensor> tensors;
  for (const std::string& argument : arguments) {
    // Names may hold '=', files seldom do.
    const std::size_t at = argument.rfind('=');
    if (at == std::string::npos || at == 0 || at + 1 == argument.size()) {
      fail(ErrorKind::argument, "--input '", argument, "' is not NAME=FILE");
    }
    const std::string name = argument.substr(0, at);
    if (!tensors.emplace(name, load_tensor_file(argument.substr(at + 1))).second) {
      fail(ErrorKind::argument, "--input '", name, "' comes twice");
    }
  }
  return tensors;
}

}  // namespace graft::cli
