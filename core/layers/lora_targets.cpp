// Which layers can have an adapter.
#include <map>
#include <optional>
#include <tuple>

#include "core/layers/layer_names.h"
#include "core/layers/lora_internal.h"
#include "core/layers/output_types.h"

namespace graft::edit {
namespace {

using Types = std::map<std::string, ValueType>;

std::optional<Shape> known_shape(const ValueType& type) {
  return type.shape ? type.shape->known() : std::nullopt;
}

/// Fills `in`, `out` and `dtype`; returns why the layer can have no adapter, or nothing.
std::string describe_weight(LoraTarget& target, const Types& types) {
  const Node& node = *target.node;
  if (node.is("MatMulNBits", "com.microsoft")) {
    target.in = {node.attributes.get_int("K", 0)};
    target.out = node.attributes.get_int("N", 0);
    const Value* const scales = node.input(2);
    target.dtype = scales == nullptr ? DType::undefined : types.at(scales->name()).dtype;
    const bool is_whole = target.in[0] > 0 && target.out > 0 && is_float(target.dtype);
    return is_whole ? "" : "its attributes K and N or its scales are missing";
  }
  const ValueType& type = types.at(target.weight->name());
  const std::optional<Shape> shape = known_shape(type);
  if (!shape || !is_float(type.dtype)) return text("its weight is ", type);
  target.dtype = type.dtype;
  if (node.is("Conv")) {
    target.groups = node.attributes.get_int("group", 1);
    if (shape->rank() < 3 || target.groups < 1) return text("its weight is ", type);
    if (target.groups > 1 && (*shape)[1] == 1) {
      return "it is depthwise: an adapter would have more numbers than its weight";
    }
    target.out = (*shape)[0];
    for (int i = 1; i < shape->rank(); ++i) target.in.push_back((*shape)[i]);
    return {};
  }
  if (shape->rank() != 2) return text("its weight is ", type, ", wanted a matrix");
  const bool is_transposed = node.is("Gemm") && node.attributes.get_int("transB", 0) != 0;
  target.in = {(*shape)[is_transposed ? 1 : 0]};
  target.out = (*shape)[is_transposed ? 0 : 1];
  return node.attributes.get_int("transA", 0) == 0 ? "" : "it transposes its input";
}

}  // namespace

bool is_of_lora(const Value& value) {
  return value.name().ends_with(kLoraA) || value.name().ends_with(kLoraB);
}

LoraTargets lora_targets(Model& model) {
  LoraTargets targets;
  const Types types = value_types(model);
  // Of names of layers. A weight that is read twice alike is one layer that is called twice.
  using Owner = std::tuple<const Value*, std::vector<std::int64_t>, std::int64_t>;
  std::map<std::string, Owner> owners;
  for (const auto& node : model.graph().nodes()) {
    if (!is_weighted(*node) || node->input_count() < 2) continue;
    Value* const origin = origin_of(node->input(1));
    if (origin == nullptr || is_of_lora(*origin) || origin_of(node->input(0)) != nullptr) continue;
    LoraTarget target{.node = node.get(),
                      .layer = layer_name(*node, origin->name()),
                      .weight = node->input(1),
                      .weight_name = origin->name()};
    const std::string why = describe_weight(target, types);
    if (!why.empty()) {
      targets.others.emplace_back(std::move(target), node->label() + ": " + why);
      continue;
    }
    const Owner owner{origin, target.in, target.out};
    const std::string stem = target.layer;
    for (int number = 1; owners.try_emplace(target.layer, owner).first->second != owner;) {
      target.layer = stem + "_" + std::to_string(number++);
    }
    targets.found.push_back(std::move(target));
  }
  return targets;
}

}  // namespace graft::edit
