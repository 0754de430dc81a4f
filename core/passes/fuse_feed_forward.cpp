// f(x w1 + b1) w2 + b2, as exporters write it: a MatMul and an Add, or a Gemm. A match starts at
// the activation.
#include <ranges>

#include "core/ops/builder.h"
#include "core/ops/registry.h"
#include "core/passes/match_internal.h"
#include "core/passes/pass.h"
#include "core/passes/verify_internal.h"

namespace graft::passes {
namespace {

/// x w + bias
struct Linear {
  Value* x;
  Value* w;
  Value* bias;  ///< null without one
  Value* result;
  bool transposes_w = false;
};

bool is_vector(const Value* value, std::int64_t size) {
  return shape_of(value) == Shape{size};
}

std::optional<Linear> linear_of_gemm(const Node& gemm) {
  const auto flag = [&](const char* name) { return gemm.attributes.get_int(name, 0) != 0; };
  const auto factor = [&](const char* name) { return gemm.attributes.get_float(name, 1.0F); };
  Value* const bias = gemm.input(2);
  const std::optional<Shape> y = shape_of(gemm.output());
  if (flag("transA") || factor("alpha") != 1.0F || factor("beta") != 1.0F || !y ||
      (bias != nullptr && !is_vector(bias, (*y)[1]))) {
    return std::nullopt;
  }
  return Linear{gemm.input(0), gemm.input(1), bias, gemm.output(), flag("transB")};
}

/// The product that the node is.
std::optional<Linear> linear_of(const Node* node) {
  if (node == nullptr) return std::nullopt;
  if (node->is("Gemm")) return linear_of_gemm(*node);
  if (!node->is("MatMul")) return std::nullopt;
  const std::optional<Shape> x = shape_of(node->input(0));
  const std::optional<Shape> w = shape_of(node->input(1));
  if (!x || !w || x->rank() < 2 || w->rank() != 2) return std::nullopt;
  return Linear{node->input(0), node->input(1), nullptr, node->output()};
}

/// Whether `sum` adds a bias to the result of `linear`, which nothing else reads: then it is part.
bool take_bias(const Node* sum, Linear& linear) {
  if (sum == nullptr || !sum->is("Add") || linear.bias != nullptr ||
      only_reader(linear.result) != sum) {
    return false;
  }
  const Shape shape = linear.result->known_shape();
  Value* const bias = sum->input(sum->input(0) == linear.result ? 1 : 0);
  if (!is_vector(bias, shape[shape.rank() - 1])) return false;
  linear.bias = bias;
  linear.result = sum->output();
  return true;
}

/// The product that makes the value.
std::optional<Linear> linear_before(const Value* value) {
  const Node* const node = value->producer();
  if (node == nullptr || !node->is("Add")) return linear_of(node);
  for (const int i : {0, 1}) {
    std::optional<Linear> linear = linear_of(node->input(i)->producer());
    if (linear && take_bias(node, *linear)) return linear;
  }
  return std::nullopt;
}

struct Match {
  Linear first;
  Node* activation;
  Linear second;
};

std::int64_t columns_of(const Value* value) {
  const Shape shape = value->known_shape();
  return shape[shape.rank() - 1];
}

/// Whether the kernel in registers takes it, and it is worth it. The gradient makes hidden values
/// again: from 128 terms on that takes longer than storing and reading them. With longer rows of
/// results, the products of oneDNN gain more than what the separate ops lose.
bool pays(const Match& match) {
  constexpr std::int64_t kVector = 16;
  constexpr std::int64_t kManyTerms = 128;
  constexpr std::int64_t kMostColumns = 256;
  constexpr std::int64_t kLeastRows = 256;
  const std::int64_t width = columns_of(match.first.x);
  const std::int64_t hidden = columns_of(match.first.result);
  const std::int64_t columns = columns_of(match.second.result);
  const std::int64_t rows = hidden == 0 ? 0 : match.first.result->known_shape().size() / hidden;
  const bool are_vectors = (width | hidden | columns) % kVector == 0;
  return match.first.x->dtype() == DType::f32 && are_vectors && width > 0 && width < kManyTerms &&
         columns > 0 && columns <= kMostColumns && hidden >= 2 * std::max(width, columns) &&
         rows >= kLeastRows;
}

std::optional<Match> match(Node& activation) {
  const OpDef* const def = OpRegistry::instance().find(activation);
  if (def == nullptr || !def->is_activation || !activation.domain().empty() ||
      !shape_of(activation.output()) || only_reader(activation.input(0)) != &activation) {
    return std::nullopt;
  }
  std::optional<Linear> first = linear_before(activation.input(0));
  std::optional<Linear> second = linear_of(only_reader(activation.output()));
  if (!first || !second || second->x != activation.output()) return std::nullopt;
  take_bias(only_reader(second->result), *second);
  Match found{*first, &activation, *second};
  return pays(found) ? std::optional(found) : std::nullopt;
}

void fuse(Graph& graph, const Match& match) {
  Builder builder(graph, match.second.result->producer());
  const auto weight = [&](const Linear& linear) {
    const Expr w = builder.expr(linear.w);
    return linear.transposes_w ? transpose_last(w) : w;
  };
  Attributes attributes = match.activation->attributes;
  attributes.set({"activation", AttributeValue(std::string(match.activation->op_type()))});
  const std::vector<Expr> inputs{builder.expr(match.first.x), weight(match.first),
                                 weight(match.second), builder.expr(match.first.bias),
                                 builder.expr(match.second.bias)};
  const Expr y = call_internal("FeedForward", inputs, std::move(attributes));
  graph.replace_all_uses(match.second.result, y.value());
}

}  // namespace

bool fuse_feed_forward(Graph& graph) {
  std::vector<Match> found;
  for (const auto& node : graph.nodes()) {
    if (const std::optional<Match> one = match(*node)) found.push_back(*one);
  }
  // The last first: an earlier one is then replaced in what reads it, too.
  for (const Match& one : std::views::reverse(found)) fuse(graph, one);
  if (!found.empty()) eliminate_dead(graph);
  verify_in_debug(graph);
  return !found.empty();
}

}  // namespace graft::passes
