// PyTorch's older exporter, by way of TorchScript.
#include <string_view>

#include "io/exporters/exporters.h"

namespace graft::onnx {

/// 190 exports had no name like this that was no constant of the source.
Role torch_script_role(const Value& value) {
  std::string_view name = value.name();
  name.remove_prefix(name.rfind('/') + 1);  // nothing where there is none
  const bool is_constant = name.starts_with("Constant") && name.ends_with("_output_0");
  return is_constant ? Role::constant : Role::unknown;
}

}  // namespace graft::onnx
