#include "core/layers/self_attention.h"

#include <cmath>
#include <limits>

#include "core/layers/kinds.h"

namespace graft::layers {
namespace {

/// x W + b, W as [in,out]. Biases of attention start at 0.
Value* project(LayerContext& context, const std::string& name, const std::string& output,
               Value* input, Value* weight, bool bias) {
  if (!bias) return context.node("MatMul", {input, weight}, output);
  const Shape shape{weight->known_shape()[1]};
  Value* const offset = context.initializer(name + ".bias", Tensor::zeros(input->dtype(), shape));
  Value* const product = context.node("MatMul", {input, weight}, name + ".matmul");
  return context.node("Add", {product, offset}, output);
}

/// Queries, keys and values, each [N,length,features], of their joint product.
std::vector<Value*> split_in_three(LayerContext& context, const std::string& name, Value* joint,
                                   std::int64_t features) {
  const std::vector<std::int64_t> sizes{features, features, features};
  const std::vector<std::string> outputs{name + ".q", name + ".k", name + ".v"};
  constexpr int kSizesAreInput = 13;
  Node* const node =
      context.opset() < kSizesAreInput
          ? context.node_of("Split", {joint}, name + ".split", outputs,
                            {{"axis", 2}, {"split", sizes}})
          : context.node_of("Split", {joint, context.integers(name + ".sizes", sizes)},
                            name + ".split", outputs, {{"axis", 2}});
  return {node->output(0), node->output(1), node->output(2)};
}

}  // namespace

Value* add(LayerContext& context, const MultiHeadAttention& layer, Value* input) {
  return attend(context, layer, input, nullptr);
}

Value* attend(LayerContext& context, const MultiHeadAttention& layer, Value* input, Value* mask) {
  const std::string name = context.name("multi_head_attention", layer.name);
  const std::string who = "multi_head_attention '" + name + "'";
  shape_of(who, *input, 3, 3);
  const std::int64_t features = features_of(who, *input, 2);
  require_at_least(who, "heads", layer.heads, 1);
  if (features % layer.heads != 0) {
    fail(ErrorKind::argument, who, ": ", features, " features do not divide into ", layer.heads,
         " heads");
  }
  const WeightStart start{layer.init, layer.seed};
  const auto weight = [&](const std::string& full, std::int64_t out, const Init& usual) {
    return context.weight(full + ".weight", input->dtype(), {features, out}, {features, out}, start,
                          usual);
  };
  const std::string in = name + ".in_proj";
  Value* const in_weight =
      weight(in, checked_multiply(3, features), {.kind = Init::xavier_uniform});
  Value* const joint = project(context, in, in, input, in_weight, layer.bias);
  const std::vector<Value*> parts = split_in_three(context, name, joint, features);
  const std::int64_t size = features / layer.heads;
  Value* const heads = context.integers(name + ".heads", {0, 0, layer.heads, size});
  const auto by_head = [&](Value* part, const std::vector<std::int64_t>& permutation) {
    Value* const split = context.node("Reshape", {part, heads}, part->name() + ".heads");
    return context.node("Transpose", {split}, part->name() + ".turned", {{"perm", permutation}});
  };
  Value* const queries = by_head(parts[0], {0, 2, 1, 3});
  Value* const keys = by_head(parts[1], {0, 2, 3, 1});
  Value* const values = by_head(parts[2], {0, 2, 1, 3});
  Value* const scale =
      context.scalar(name + ".scale", *input, 1 / std::sqrt(static_cast<double>(size)));
  Value* const products = context.node("MatMul", {queries, keys}, name + ".products");
  Value* scores = context.node("Mul", {products, scale}, name + ".scores");
  if (mask != nullptr) {
    Value* const never =
        context.scalar(name + ".never", *input, -std::numeric_limits<double>::infinity());
    scores = context.node("Where", {mask, scores, never}, name + ".masked");
  }
  // Counted from the front: axes below 0 came with opset 11.
  Value* const shares = context.node("Softmax", {scores}, name + ".shares", {{"axis", 3}});
  Value* const mixed = context.node("MatMul", {shares, values}, name + ".mixed");
  Value* const turned = context.node("Transpose", {mixed}, name + ".mixed.turned",
                                     {{"perm", std::vector<std::int64_t>{0, 2, 1, 3}}});
  Value* const target = context.integers(name + ".shape", {0, 0, features});
  Value* const joined = context.node("Reshape", {turned, target}, name + ".joined");
  const std::string out = name + ".out_proj";
  return project(context, out, name, joined, weight(out, features, Init{}), layer.bias);
}

}  // namespace graft::layers
