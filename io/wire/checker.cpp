// What io asks of libonnx elsewhere, answered from the lines of GRAFT_MODELS (adr/0075).
#include "io/proto/checker.h"

#include "core/base/error.h"
#include "core/ops/chosen.h"
#include "io/op_forms.h"
#include "io/op_types.h"
#include "io/proto/form_checker.h"
#include "io/proto/standard_functions.h"
#include "io/wire/op_lines.h"

namespace graft::onnx {

void run_checker(pb::ModelProto& model, const std::filesystem::path& /*folder*/) {
  check_forms(model, op_lines(), missing_op());
}

/// Ops without a line are refused by run_checker, though ONNX has bodies for some.
void attach_standard_functions(Model& /*model*/) {}

std::optional<SlotTypes> slots_that_take(const Node& /*node*/, std::int64_t /*opset*/,
                                         DType /*type*/) {
  fail(
      ErrorKind::unsupported,
      "which types an op may have is in libonnx, which a build with GRAFT_MODELS lacks: change the "
      "model's precision with one that has it");
}

std::vector<std::string> op_forms(const std::string& op) {
  std::vector<std::string> forms;
  for (const std::string_view line : op_lines()) {
    if (line.starts_with(op + " ")) forms.emplace_back(line);
  }
  return forms;
}

}  // namespace graft::onnx
