#include "core/ops/train/loss_lowering.h"

#include <numeric>

#include "core/ops/lowering.h"
#include "core/ops/table_limit.h"
#include "core/ops/train/loss_setup.h"

namespace graft {
namespace {

/// Labels as numbers between which and the scores [N,C,d...] one multiplies.
class Target {
 public:
  /// `first` is the input that holds the scores; labels and weights follow.
  Target(const LoweredNode& node, int first) : scores_(node.x(first)) {
    const Expr labels = unsqueeze(cast(node.x(first + 1), DType::i64), {1});
    const std::int64_t classes = scores_.shape()[1];
    require_small_table(node.node(), classes);
    std::vector<double> numbers(static_cast<std::size_t>(classes));
    std::iota(numbers.begin(), numbers.end(), 0.0);
    const Expr is_class = equal(labels, node.constant(DType::i64, by_class(), numbers));
    share_ = cast(is_class, scores_.dtype());
    if (node.attributes().has("ignore_index")) {
      const auto ignored = static_cast<double>(node.attributes().get_int("ignore_index", 0));
      counts_ = cast(logical_not(equal(labels, constant_like(labels, ignored))), scores_.dtype());
      share_ = share_ * counts_;
    }
    if (node.has_x(first + 2)) weights_ = reshape(node.x(first + 2), by_class());
  }

  /// By how much each class counts: weights, labels and what label_smoothing spreads. [N,C,d...]
  Expr smoothed(double smoothing) const {
    Expr share = share_;
    if (smoothing != 0) {
      const Expr spread = constant_like(scores_, smoothing / static_cast<double>(classes()));
      share = share * (1.0 - smoothing) + (counts_ ? counts_ * spread : spread);
    }
    return weights_ ? share * weights_ : share;
  }
  /// What a mean divides by.
  Expr total() const { return reduce_sum(weights_ ? share_ * weights_ : share_, {}, false); }

 private:
  std::int64_t classes() const { return scores_.shape()[1]; }
  /// [1,C,1...]
  Shape by_class() const {
    std::vector<std::int64_t> dims(static_cast<std::size_t>(scores_.rank()), 1);
    dims[1] = classes();
    return Shape(std::move(dims));
  }

  Expr scores_;
  Expr share_;    // 1 at a sample's class; [N,C,d...]
  Expr counts_;   // 0 where the label is ignored; [N,1,d...], empty where none is
  Expr weights_;  // [1,C,1...], empty where all are 1
};

/// The gradient of each sample's loss: [N,1,d...], or a scalar.
Expr sample_gradient(const LoweredNode& node, const Target& target) {
  const LossReduction reduction = loss_reduction(node.attributes());
  if (reduction == LossReduction::none) return unsqueeze(node.x(0), {1});
  return reduction == LossReduction::mean ? node.x(0) / target.total() : node.x(0);
}

}  // namespace

std::vector<Expr> lower_cross_entropy(const Node& node, Builder& builder) {
  const LoweredNode n(node, builder);
  const Target target(n, 0);
  const Expr log_probabilities = call("LogSoftmax", {n.x(0)}, {{"axis", 1}});
  const Expr share = target.smoothed(n.number("label_smoothing", 0.0F));
  // A class that is masked by -infinity and has no share counts nothing.
  const Expr none = constant_like(share, 0.0);
  const Expr shares = where(equal(share, none), none, share * log_probabilities);
  const Expr losses = -reduce_sum(shares, {1}, false);
  const LossReduction reduction = loss_reduction(n.attributes());
  if (reduction == LossReduction::none) return {losses, log_probabilities};
  const Expr sum = reduce_sum(losses, {}, false);
  return {reduction == LossReduction::mean ? sum / target.total() : sum, log_probabilities};
}

std::vector<Expr> lower_cross_entropy_grad(const Node& node, Builder& builder) {
  const LoweredNode n(node, builder);
  const Target target(n, 1);
  const Expr share = target.smoothed(n.number("label_smoothing", 0.0F));
  const Expr probabilities = call("Softmax", {n.x(1)}, {{"axis", 1}});
  const Expr slope = probabilities * reduce_sum(share, {1}, true) - share;
  return {slope * sample_gradient(n, target)};
}

std::vector<Expr> lower_nll_grad(const Node& node, Builder& builder) {
  const LoweredNode n(node, builder);
  const Target target(n, 1);
  return {-(target.smoothed(0.0) * sample_gradient(n, target))};
}

}  // namespace graft
