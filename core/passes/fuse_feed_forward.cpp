// f(x w1 + b1) w2 + b2, as exporters write it: a MatMul and an Add, or a Gemm.
#include <algorithm>

#include "core/ops/registry.h"
#include "core/passes/pass.h"
#include "core/passes/rewrite_passes.h"

namespace graft::passes {
namespace {
namespace feed_forward_fusion {

bool is_plain_gemm(const Node& gemm) {
  return gemm.attributes.get_int("transA", 0) == 0 &&
         gemm.attributes.get_float("alpha", 1.0F) == 1.0F &&
         gemm.attributes.get_float("beta", 1.0F) == 1.0F;
}

bool is_product_of_rows(const Node& matmul) {
  const std::optional<Shape> x = shape_of(matmul.input(0));
  const std::optional<Shape> w = shape_of(matmul.input(1));
  return x && w && x->rank() > 1 && w->rank() == 2;
}

/// x w + bias
struct Linear {
  explicit Linear(const Pattern& x)
      : gemm(op("Gemm", {x, w, or_none(bias)}, is_plain_gemm)),
        result(either(op("MatMul", {x, w}, is_product_of_rows), gemm) + opt(bias)) {}

  Pattern w = any();
  Pattern bias = any();
  Pattern gemm;
  Pattern result;
};

bool is_activation(const Node& node) {
  const OpDef* const def = OpRegistry::instance().find(node);
  return def != nullptr && def->is_activation && node.domain().empty();
}

const Pattern x = any();
const Linear first(x);
const Pattern activation = op_where(is_activation, {once(first.result)});
const Linear second(once(activation));

std::int64_t last_dim(const Shape& shape) {
  return shape[shape.rank() - 1];
}

/// Whether the kernel in registers takes it, and it is worth it. The gradient makes hidden values
/// again: from 128 terms on that takes longer than storing and reading them. With longer rows of
/// results, the products of oneDNN gain more than what the separate ops lose.
bool pays(const Match& m) {
  constexpr std::int64_t kVector = 16;
  constexpr std::int64_t kManyTerms = 128;
  constexpr std::int64_t kMostColumns = 256;
  constexpr std::int64_t kLeastRows = 256;
  const Shape hidden_shape = m[activation].shape();
  const std::int64_t width = last_dim(m[x].shape());
  const std::int64_t hidden = last_dim(hidden_shape);
  const std::int64_t columns = last_dim(m.result()->known_shape());
  const std::int64_t rows = hidden == 0 ? 0 : hidden_shape.size() / hidden;
  const bool are_vectors = (width | hidden | columns) % kVector == 0;
  return m[x].dtype() == DType::f32 && are_vectors && width > 0 && width < kManyTerms &&
         columns > 0 && columns <= kMostColumns && hidden >= 2 * std::max(width, columns) &&
         rows >= kLeastRows;
}

bool is_feed_forward(const Match& m) {
  const auto is_bias = [&](const Pattern& bias, const Shape& sum) {
    return !m.has(bias) || m[bias].shape() == Shape{last_dim(sum)};
  };
  return is_bias(first.bias, m[activation].shape()) &&
         is_bias(second.bias, m.result()->known_shape()) && pays(m);
}

Expr weight(const Match& m, const Linear& linear) {
  const bool is_transposed =
      m.has(linear.gemm) && m.node(linear.gemm).attributes.get_int("transB", 0) != 0;
  return is_transposed ? transpose_last(m[linear.w]) : m[linear.w];
}

Results feed_forward_node(const Match& m) {
  const Node& node = m.node(activation);
  Attributes attributes = node.attributes;
  attributes.set({"activation", AttributeValue(node.op_type())});
  return call_internal("FeedForward",
                       {m[x], weight(m, first), weight(m, second), m[first.bias], m[second.bias]},
                       std::move(attributes));
}

Expr relu(const Expr& of) {
  return call("Relu", {of});
}

const std::vector<Rewrite> kRewrites{
    {.name = "feed_forward",
     .match = second.result,
     .where = is_feed_forward,
     .to = feed_forward_node,
     .samples =
         {{"products_and_sums",
           [](SampleNet& net) {
             const Expr h = net.input({32}) + matmul(net.input({64, 4, 16}), net.input({16, 32}));
             return net.input({16}) + matmul(relu(h), net.input({32, 16}));
           }},
          {"no_biases",
           [](SampleNet& net) {
             const Expr h = matmul(net.input({256, 16}), net.input({16, 32}));
             return matmul(call("Gelu", {h}, {{"approximate", "tanh"}}), net.input({32, 16}));
           }},
          {"gemms",
           [](SampleNet& net) {
             const Expr h =
                 call("Gemm", {net.input({256, 16}), net.input({32, 16}), net.input({32})},
                      {{"transB", 1}});
             return call("Gemm", {relu(h), net.input({32, 16}), net.input({16})});
           }},
          {"sum_behind_a_gemm",
           [](SampleNet& net) {
             const Expr h = call("Gemm", {net.input({256, 16}), net.input({16, 32})});
             return matmul(sigmoid(h + net.input({32})), net.input({32, 16}));
           }}}},
};

}  // namespace feed_forward_fusion
}  // namespace

std::span<const Rewrite> fuse_feed_forward_rewrites() {
  return feed_forward_fusion::kRewrites;
}

bool fuse_feed_forward(Graph& graph) {
  return rewrite(graph, feed_forward_fusion::kRewrites);
}

}  // namespace graft::passes
