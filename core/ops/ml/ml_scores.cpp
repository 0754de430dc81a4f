#include "core/ops/ml/ml_scores.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace graft {
namespace {

double logistic(double x) {
  return 1.0 / (1.0 + std::exp(-x));
}

/// The inverse of the error function. Source: S. Winitzki, "A handy approximation for the error
/// function and its inverse", 2008; the constant is onnxruntime's.
double inverse_erf(double x) {
  constexpr double kA = 0.147;
  constexpr double kPi = 3.14159;
  const double log = std::log((1 - x) * (1 + x));
  const double half = 2 / (kPi * kA) + 0.5 * log;
  const double root = std::sqrt(-half + std::sqrt(half * half - log / kA));
  return x < 0 ? -root : root;
}

double probit(double x) {
  return std::sqrt(2.0) * inverse_erf(2 * x - 1);
}

void softmax(double* scores, std::size_t count, bool skips_zeros) {
  constexpr double kZero = 1e-7;
  if (count == 0) return;
  const double most = *std::max_element(scores, scores + count);
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const bool is_zero = skips_zeros && std::abs(scores[i]) <= kZero;
    scores[i] = is_zero ? scores[i] * std::exp(-most) : std::exp(scores[i] - most);
    sum += scores[i];
  }
  for (std::size_t i = 0; i < count; ++i) scores[i] = sum == 0 ? 0.5 : scores[i] / sum;
}

}  // namespace

PostTransform post_transform(const Node& node) {
  static constexpr std::array<std::string_view, 5> kNames{"NONE", "SOFTMAX", "LOGISTIC",
                                                          "SOFTMAX_ZERO", "PROBIT"};
  const std::string name = node.attributes.get_string("post_transform", "NONE");
  const auto* const at = std::ranges::find(kNames, name);
  if (at == kNames.end()) {
    fail(ErrorKind::model, node.label(), ": post_transform '", name,
         "' is none of NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO, PROBIT");
  }
  return static_cast<PostTransform>(at - kNames.begin());
}

void apply(PostTransform transform, double* scores, std::size_t count) {
  switch (transform) {
    case PostTransform::none:
      return;
    case PostTransform::softmax:
      return softmax(scores, count, false);
    case PostTransform::softmax_zero:
      return softmax(scores, count, true);
    case PostTransform::logistic:
      std::transform(scores, scores + count, scores, logistic);
      return;
    case PostTransform::probit:
      std::transform(scores, scores + count, scores, probit);
      return;
  }
}

void write_two(PostTransform transform, SecondScore how, double score, double* scores) {
  const bool is_complement = how == SecondScore::complement;
  scores[0] = is_complement ? 1 - score : -score;
  scores[1] = score;
  if (!is_complement && transform != PostTransform::probit) apply(transform, scores, 2);
}

std::vector<std::int64_t> class_labels(const Node& node, std::string_view attribute) {
  std::vector<std::int64_t> labels = node.attributes.get_ints(attribute);
  if (labels.empty()) fail(ErrorKind::model, node.label(), ": has no class labels");
  return labels;
}

void name_classes(Node& node, std::string_view names, std::string_view labels, Builder& builder) {
  const Attribute* const found = node.attributes.find(names);
  const auto* const list =
      found == nullptr ? nullptr : std::get_if<std::vector<std::string>>(&found->value);
  if (list == nullptr || list->empty()) return;
  const std::vector<std::string> kept = *list;
  std::vector<std::int64_t> numbers(kept.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<std::int64_t>(i);
  node.attributes.erase(names);
  node.attributes.set({labels, numbers});
  Value* const output = node.output(0);
  if (output == nullptr) return;
  builder.insert_before(builder.graph().next(&node));
  Graph& graph = builder.graph();
  const std::string name = output->name();
  graph.rename(output, graph.unique_name(name + "_number"));
  Node* const encoder = builder.node("LabelEncoder", kMlDomain, {output}, {name},
                                     {{"keys_int64s", numbers}, {"values_strings", kept}});
  graph.replace_all_uses(output, encoder->output());
  encoder->set_input(0, output);
}

Samples2d samples_of(const Shape& x) {
  if (x.rank() == 1) return {1, x[0]};
  return {x[0], x.size(1, x.rank())};
}

namespace {

Dim sample_count(const InferContext& context) {
  context.require_rank(0, 1, 2);
  const SymShape* const shape = context.shape(0);
  if (shape == nullptr) return {};
  return shape->rank() == 1 ? Dim(1) : (*shape)[0];
}

}  // namespace

void infer_classifier(InferContext& context, std::int64_t classes) {
  const Dim count = sample_count(context);
  context.set_output(0, DType::i64, SymShape{count});
  context.set_output(1, DType::f32, SymShape{count, Dim(classes)});
}

void infer_regressor(InferContext& context, DType dtype, std::int64_t targets) {
  if (targets < 1) context.fail(ErrorKind::model, "has ", targets, " targets, wanted at least 1");
  context.set_output(0, dtype, SymShape{sample_count(context), Dim(targets)});
}

void check_length(const Node& node, std::string_view what, std::size_t found, std::size_t wanted) {
  if (found != wanted) {
    fail(ErrorKind::model, node.label(), ": ", what, " has ", found, " entries, wanted ", wanted);
  }
}

}  // namespace graft
