// A model file: read, written and read again. The pipeline's target goes on from there. And a file
// of the kind that a model takes: sequences, optionals, maps.
#include <algorithm>

#include "core/graph/print.h"
#include "core/graph/verify.h"
#include "io/onnx.h"
#include "tests/fuzz/bytes/folder.h"
#include "tests/fuzz/target.h"

namespace graft::fuzz {
namespace {

/// A model whose tensors may lie in the file "data" beside it.
Model parse_in_folder(std::string_view bytes) {
  static const auto data = folder().write("data", std::string(64, '\1'));
  return onnx::parse(bytes, data.parent_path());
}

/// With all tensors in another file: the same nodes and elements, which are then all stored as
/// bytes.
void require_same_when_split(const Model& model) {
  const auto path = folder().path() / "split.onnx";
  if (!succeeds([&] {
        onnx::save(model, path, {.external_data = "split.data", .external_threshold_bytes = 1});
      })) {
    return;
  }
  const Model split = onnx::load(path);
  require(print(split) == print(model), "split into two files, its nodes differ");
  const auto same = [](const Value* a, const Value* b) {
    if (a->dtype() == DType::string)
      return a->initializer().strings() == b->initializer().strings();
    return equal_bits(a->initializer(), b->initializer());
  };
  require(std::ranges::equal(split.graph().initializers(), model.graph().initializers(), same),
          "split into two files, its elements differ");
}

/// Its inputs are of each kind of data.
const Model& containers() {
  static const Model model =
      onnx::load(std::string(GRAFT_SOURCE_DIR) + "/tests/fuzz/corpus/model/containers");
  return model;
}

}  // namespace

void run_model(std::string_view bytes) {
  succeeds([&] {
    const Model model = parse_in_folder(bytes);
    verify(model);
    print(model);
    const std::string written = onnx::serialize(model);
    require(onnx::serialize(onnx::parse(written)) == written, "written again, it differs");
    require_same_when_split(model);
  });
}

void run_data(std::string_view bytes) {
  if (bytes.empty()) return;
  const auto& inputs = containers().graph().inputs();
  const auto which = static_cast<unsigned char>(bytes.front()) % inputs.size();
  static const KeptFile file("data.pb");
  const auto& path = file.write(bytes.substr(1));
  succeeds([&] { onnx::load_data(path, *inputs[which]); });
}

}  // namespace graft::fuzz
