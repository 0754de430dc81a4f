#pragma once

#include <string>
#include <vector>

#include "core/graph/model.h"
#include "core/layers/lora.h"

namespace graft::edit {

/// A layer that can have an adapter.
struct LoraTarget {
  Node* node = nullptr;
  std::string layer;
  Value* weight = nullptr;    ///< what the node multiplies with; for MatMulNBits its packed numbers
  std::string weight_name{};  ///< of the initializer or Constant that it comes from
  DType dtype = DType::undefined;
  std::int64_t out = 0;
  /// [in], or [in,*kernel] of a convolution; `in` of one group.
  std::vector<std::int64_t> in{};
  std::int64_t groups = 1;  ///< of a convolution: each has an adapter, of the same rank
};

struct LoraTargets {
  std::vector<LoraTarget> found;
  /// Layers that cannot have one, and why: "MatMul node 'x': why".
  std::vector<std::pair<LoraTarget, std::string>> others;
};

/// The layers of the model's graph.
LoraTargets lora_targets(Model& model);

/// An adapter in its graph: layer y = base(x, W); down = x A^T, scaled, up = scaled B^T,
/// sum = y + up.
struct AttachedLora {
  std::string layer;
  Value* a = nullptr;
  Value* b = nullptr;
  Node* base = nullptr;
  Node* down = nullptr;
  Node* scaled = nullptr;
  Node* up = nullptr;
  Node* sum = nullptr;
  double alpha = 0.0;
};

/// The adapters that stand in a graph. Throws Error{model} for one that was changed.
std::vector<AttachedLora> attached_lora(const Graph& graph);

/// Whether the value is the A or the B of an adapter.
bool is_of_lora(const Value& value);
inline constexpr std::string_view kLoraA = ".lora_A.weight";
inline constexpr std::string_view kLoraB = ".lora_B.weight";

}  // namespace graft::edit
