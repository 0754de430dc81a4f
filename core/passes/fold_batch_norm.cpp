// With fixed statistics a BatchNormalization multiplies and shifts each channel: so can the weight
// and the bias of the convolution or the product before it, once and for all.
#include "core/base/at.h"
#include "core/ops/infer.h"
#include "core/passes/pass.h"
#include "core/passes/rewrite_passes.h"

namespace graft::passes {
namespace {
namespace batch_norm_folding {

const Pattern x = any();
const Pattern weight = any();
const Pattern bias = any();
const Pattern scale = any();
const Pattern shift = any();
const Pattern mean = any();
const Pattern variance = any();

bool has_fixed_statistics(const Node& node) {
  return node.attributes.get_int("training_mode", 0) == 0;
}

/// A product whose second operand has a column for each channel, unscaled.
bool is_layer(const Node& node) {
  return node.attributes.get_float("alpha", 1.0F) == 1.0F &&
         node.attributes.get_float("beta", 1.0F) == 1.0F;
}

Pattern norm_of(const Pattern& layer) {
  return op("BatchNormalization", {once(layer), scale, shift, mean, variance},
            has_fixed_statistics);
}
const Pattern convolution = op("Conv", {x, weight, or_none(bias)});
const Pattern product = op("Gemm", {x, weight, or_none(bias)}, is_layer);

/// A value of the result's type that is known before the run, and so is what is made of it.
bool is_known(const Match& m, const Pattern& pattern) {
  return !m.has(pattern) || constant_of(m[pattern].value()).dtype() == m.result()->dtype();
}

bool all_are_known(const Match& m) {
  const DType dtype = m.result()->dtype();
  return (dtype == DType::f32 || dtype == DType::f64) && is_known(m, weight) && is_known(m, bias) &&
         is_known(m, scale) && is_known(m, shift) && is_known(m, mean) && is_known(m, variance);
}

/// The layer with its channels multiplied, which lie along that axis of the weight.
Results scaled_layer(const Match& m, const Node& layer, int channel_axis) {
  const double epsilon = m.root().attributes.get_float("epsilon", 1e-5F);
  const Expr factor = m[scale] / sqrt(m[variance] + epsilon);
  std::vector<std::int64_t> along(static_cast<std::size_t>(m[weight].rank()), 1);
  at(along, channel_axis) = factor.shape().size();
  const Expr from = m.has(bias) ? m[bias] - m[mean] : -m[mean];
  return call(layer.op_type(),
              {m[x], m[weight] * reshape(factor, Shape(along)), from * factor + m[shift]},
              layer.attributes);
}

/// What samples are made of: a BatchNormalization of that many channels, no two operands alike.
Expr sample_norm(SampleNet& net, const Expr& of, std::int64_t channels) {
  const Shape shape{channels};
  return call("BatchNormalization", {of, net.constant(shape, 0.25), net.constant(shape, -0.5),
                                     net.constant(shape, 0.75), net.constant(shape, 2.0)});
}

const std::vector<Rewrite> kRewrites{
    {.name = "norm_of_convolution",
     .match = norm_of(convolution),
     .where = all_are_known,
     .to = [](const Match& m) { return scaled_layer(m, m.node(convolution), 0); },
     .samples = {{"without_bias",
                  [](SampleNet& net) {
                    const Expr w = net.constant({4, 3, 2, 2});
                    return sample_norm(net, call("Conv", {net.input({2, 3, 5, 4}), w}), 4);
                  }},
                 {"in_groups_with_bias",
                  [](SampleNet& net) {
                    const Expr y = call(
                        "Conv", {net.input({2, 4, 6}), net.constant({6, 2, 3}), net.constant({6})},
                        {{"group", 2}});
                    return sample_norm(net, y, 6);
                  }}}},
    {.name = "norm_of_product",
     .match = norm_of(product),
     .where = all_are_known,
     .to =
         [](const Match& m) {
           const Node& layer = m.node(product);
           return scaled_layer(m, layer, layer.attributes.get_int("transB", 0) == 0 ? 1 : 0);
         },
     .samples = {{"columns",
                  [](SampleNet& net) {
                    const Expr y =
                        call("Gemm", {net.input({3, 4}), net.constant({4, 5}), net.constant({5})});
                    return sample_norm(net, y, 5);
                  }},
                 {"rows",
                  [](SampleNet& net) {
                    const Expr y =
                        call("Gemm", {net.input({3, 4}), net.constant({5, 4})}, {{"transB", 1}});
                    return sample_norm(net, y, 5);
                  }}}},
};

}  // namespace batch_norm_folding
}  // namespace

std::span<const Rewrite> fold_batch_norm_rewrites() {
  return batch_norm_folding::kRewrites;
}

bool fold_batch_norm(Graph& graph) {
  return rewrite(graph, batch_norm_folding::kRewrites);
}

}  // namespace graft::passes
