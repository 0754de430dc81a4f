#include "core/passes/flex_attention_internal.h"

#include <cmath>

#include "core/ops/builder.h"
#include "core/ops/table_limit.h"
#include "core/passes/splice_internal.h"

namespace graft::passes {
namespace {

/// Scores = score_mod(Q K^T scale), P = prob_mod(softmax(Scores)), Y = P V; in the standard's order
/// of roundings: Q and K take the root of the scale each, the rest is in softmax_precision.
class FlexAttention {
 public:
  explicit FlexAttention(Node& node) : node_(node), builder_(node.graph(), &node) {
    for (int i = 0; i < 3; ++i) check_input(i);
  }

  Expr run() {
    const Expr q = builder_.expr(node_.input(0));
    const Expr root = constant_like(q, std::sqrt(scale()));
    const Expr keys = transpose(for_each_query_head(1) * root, {0, 1, 3, 2});
    const DType type = precision();
    const Expr scores = modified("score_mod", cast(matmul(q * root, keys), type));
    const Expr shares = modified("prob_mod", call("Softmax", {scores}, {{"axis", -1}}));
    return cast(matmul(shares, cast(for_each_query_head(2), type)), node_.input(2)->dtype());
  }

 private:
  void check_input(int index) const {
    const Value* const value = node_.input(index);
    if (value == nullptr) fail(ErrorKind::model, node_.label(), ": input ", index, " is missing");
    if (!is_float(value->dtype()) || !value->shape()) {
      fail(ErrorKind::unsupported, node_.label(), ": input ", index, " is ", value->type(),
           ", wanted a known float type and rank");
    }
    if (value->shape()->rank() != 4) {
      fail(ErrorKind::shape, node_.label(), ": input ", index, " is ", value->type(),
           ", wanted rank 4");
    }
  }

  std::int64_t known_dim(int input, int axis) const {
    const Dim& dim = (*node_.input(input)->shape())[axis];
    if (!dim.is_known()) {
      fail(ErrorKind::unsupported, node_.label(), ": dim ", axis, " of input ", input,
           " is not known");
    }
    return dim.value();
  }

  double scale() const {
    if (node_.attributes.has("scale")) {
      const auto given = static_cast<double>(node_.attributes.get_float("scale", 1.0F));
      if (given >= 0) return given;
      fail(ErrorKind::unsupported, node_.label(), ": scale is ", given, ", wanted none below 0");
    }
    return 1.0 / std::sqrt(static_cast<double>(std::max<std::int64_t>(1, known_dim(0, 3))));
  }

  DType precision() const {
    const DType own = node_.input(0)->dtype() == DType::f64 ? DType::f64 : DType::f32;
    const std::int64_t number = node_.attributes.get_int("softmax_precision", 0);
    if (number == 0) return own;
    for (const DType type : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
      if (number == static_cast<std::int64_t>(type)) return type;
    }
    fail(ErrorKind::type, node_.label(), ": softmax_precision is ", number,
         ", which is no float type");
  }

  /// Keys or values, each head as often as queries share it.
  Expr for_each_query_head(int input) {
    const Expr x = builder_.expr(node_.input(input));
    if ((*node_.input(0)->shape())[1].same_as((*node_.input(input)->shape())[1])) return x;
    const std::int64_t queries = known_dim(0, 1);
    const std::int64_t heads = known_dim(input, 1);
    if (heads == 0 || queries % heads != 0) {
      fail(ErrorKind::shape, node_.label(), ": ", queries, " heads of Q are no multiple of ", heads,
           " of input ", input);
    }
    require_small_table(node_, queries);
    std::vector<std::int64_t> indices;
    for (std::int64_t i = 0; i < queries; ++i) indices.push_back(i / (queries / heads));
    return call("Gather", {x, constant_ints(builder_, indices)}, {{"axis", 1}});
  }

  /// What the attribute's graph makes of x; x without one.
  Expr modified(std::string_view attribute, const Expr& x) {
    const Attribute* const found = node_.attributes.find(attribute);
    if (found == nullptr) return x;
    const auto* const body = std::get_if<std::shared_ptr<Graph>>(&found->value);
    if (body == nullptr || (*body)->inputs().size() != 1 || (*body)->outputs().size() != 1) {
      fail(ErrorKind::model, node_.label(), ": ", attribute,
           " is no graph of one input and one output");
    }
    const std::string prefix = text(node_.name().empty() ? "flex" : node_.name(), "/", attribute);
    Value* const result = splice(**body, node_.graph(), &node_, {x.value()}, prefix + "/").at(0);
    result->set_type(x.value()->type());
    return builder_.expr(result);
  }

  Node& node_;
  Builder builder_;
};

}  // namespace

bool is_flex_attention(const Node& node) {
  return node.is("FlexAttention", "ai.onnx.preview");
}

void inline_flex_attention(Node& node) {
  replace_node(node, {FlexAttention(node).run().value()});
}

}  // namespace graft::passes
