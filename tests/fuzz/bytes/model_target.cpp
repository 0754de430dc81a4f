// A model file: read, written and read again. The pipeline's target goes on from there.
#include "core/graph/print.h"
#include "core/graph/verify.h"
#include "io/onnx.h"
#include "tests/fuzz/target.h"

namespace graft::fuzz {

void run_model(std::string_view bytes) {
  succeeds([&] {
    const Model model = onnx::parse(bytes);
    verify(model);
    print(model);
    const std::string written = onnx::serialize(model);
    require(onnx::serialize(onnx::parse(written)) == written, "written again, it differs");
  });
}

}  // namespace graft::fuzz
