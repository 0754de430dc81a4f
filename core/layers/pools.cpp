#include <algorithm>

#include "core/layers/kinds.h"

namespace graft::layers {
namespace {

bool is_padded(const std::vector<std::int64_t>& padding) {
  return std::any_of(padding.begin(), padding.end(), [](std::int64_t pad) { return pad != 0; });
}

}  // namespace

Value* add(LayerContext& context, const MaxPool& layer, Value* input) {
  const std::string name = context.name("max_pool", layer.name);
  const std::string who = "max_pool '" + name + "'";
  const int dims = shape_of(who, *input, 3, 5).rank() - 2;
  return context.node("MaxPool", {input}, name,
                      window(who, dims, layer.kernel, layer.stride, layer.padding));
}

Value* add(LayerContext& context, const AveragePool& layer, Value* input) {
  const std::string name = context.name("average_pool", layer.name);
  const std::string who = "average_pool '" + name + "'";
  const int dims = shape_of(who, *input, 3, 5).rank() - 2;
  Attributes attributes = window(who, dims, layer.kernel, layer.stride, layer.padding);
  if (layer.count_padding && is_padded(layer.padding)) attributes.set({"count_include_pad", 1});
  return context.node("AveragePool", {input}, name, std::move(attributes));
}

Value* add(LayerContext& context, const GlobalAveragePool& layer, Value* input) {
  const std::string name = context.name("global_average_pool", layer.name);
  shape_of("global_average_pool '" + name + "'", *input, 3, 5);
  return context.node("GlobalAveragePool", {input}, name);
}

}  // namespace graft::layers
