#include "core/ops/train/update_lowering.h"

#include "core/ops/lowering.h"

namespace graft {
namespace {

constexpr int kParameter = 0;
constexpr int kGradient = 1;
constexpr int kRate = 2;
constexpr int kStep = 3;

/// What the formulas read, in the parameter's type, whatever gradient and state are stored in.
class LoweredUpdate : public LoweredNode {
 public:
  using LoweredNode::LoweredNode;

  Expr parameter() const { return x(kParameter); }
  DType dtype() const { return parameter().dtype(); }
  Expr rate() const { return cast(x(kRate), dtype()); }
  /// The gradient with weight decay.
  Expr gradient() const { return gradient(number("weight_decay", 0.0F)); }
  Expr gradient(double decay) const {
    const Expr plain = cast(x(kGradient), dtype());
    return decay == 0 ? plain : plain + parameter() * decay;
  }
  Expr state(int index) const { return cast(x(kFirstState + index), dtype()); }
  bool has_state(int index) const { return has_x(kFirstState + index) && has_y(1 + index); }
  /// New state `index` in the type in which it is stored.
  Expr stored(int index, const Expr& content) const {
    return cast(content, x(kFirstState + index).dtype());
  }
};

/// share * old + (1 - share) * part
Expr average(const Expr& old, const Expr& part, double share) {
  return old * share + part * (1.0 - share);
}

}  // namespace

std::vector<Expr> lower_sgd(const Node& node, Builder& builder) {
  const LoweredUpdate update(node, builder);
  const Expr p = update.parameter();
  const Expr gradient = update.gradient();
  if (!update.has_x(kFirstState)) return {p - update.rate() * gradient};
  const double momentum = update.number("momentum", 0.0F);
  const Expr step = update.x(kStep);
  const Expr is_first = equal(step, constant_like(step, 1.0));
  const Expr later =
      update.state(0) * momentum + gradient * (1.0 - update.number("dampening", 0.0F));
  const Expr buffer = where(is_first, gradient, later);
  const Expr direction = update.flag("nesterov") ? gradient + buffer * momentum : buffer;
  return {p - update.rate() * direction, update.stored(0, buffer)};
}

/// The corrections by beta^t are computed in f64: in f32 their first ones would have three digits.
std::vector<Expr> lower_adam(const Node& node, Builder& builder) {
  const LoweredUpdate update(node, builder);
  const double beta1 = update.number("beta1", 0.9F);
  const double beta2 = update.number("beta2", 0.999F);
  const double decay = update.number("weight_decay", 0.0F);
  const bool is_decoupled = update.flag("decoupled");
  const Expr t = cast(update.x(kStep), DType::f64);
  const Expr lr = cast(update.x(kRate), DType::f64);
  const auto correction = [&](double beta) {
    return 1.0 - call("Pow", {constant_like(t, beta), t});
  };
  const auto narrow = [&](const Expr& number) { return cast(number, update.dtype()); };
  const Expr gradient = update.gradient(is_decoupled ? 0.0 : decay);
  const Expr mean = average(update.state(0), gradient, beta1);
  const Expr square = average(update.state(1), gradient * gradient, beta2);
  const Expr root = sqrt(square) * narrow(1.0 / sqrt(correction(beta2)));
  const Expr p = update.parameter();
  const Expr kept = is_decoupled && decay != 0 ? p * narrow(1.0 - lr * decay) : p;
  const Expr rate = narrow(lr / correction(beta1));
  return {kept - rate * mean / (root + update.number("epsilon", 1e-8F)), update.stored(0, mean),
          update.stored(1, square)};
}

std::vector<Expr> lower_rmsprop(const Node& node, Builder& builder) {
  const LoweredUpdate update(node, builder);
  const double alpha = update.number("alpha", 0.99F);
  const Expr gradient = update.gradient();
  const Expr square = average(update.state(0), gradient * gradient, alpha);
  Expr variance = square;
  std::vector<Expr> results{{}, update.stored(0, square), {}, {}};
  if (update.has_state(2)) {
    const Expr mean = average(update.state(2), gradient, alpha);
    variance = square - mean * mean;
    results[3] = update.stored(2, mean);
  }
  Expr direction = gradient / (sqrt(variance) + update.number("epsilon", 1e-8F));
  if (update.has_state(1)) {
    direction = direction + update.state(1) * update.number("momentum", 0.0F);
    results[2] = update.stored(1, direction);
  }
  results[0] = update.parameter() - update.rate() * direction;
  return results;
}

std::vector<Expr> lower_adagrad(const Node& node, Builder& builder) {
  const LoweredUpdate update(node, builder);
  const Expr before = cast(update.x(kStep), update.dtype()) - 1.0;
  const Expr rate = update.rate() / (before * update.number("lr_decay", 0.0F) + 1.0);
  const Expr gradient = update.gradient();
  const Expr sum = update.state(0) + gradient * gradient;
  const Expr root = sqrt(sum) + update.number("epsilon", 1e-10F);
  return {update.parameter() - rate * gradient / root, update.stored(0, sum)};
}

std::vector<Expr> lower_accumulate(const Node& node, Builder& builder) {
  const LoweredNode n(node, builder);
  return {n.x(0) + cast(n.x(1), n.x(0).dtype()) * n.number("scale", 1.0F)};
}

std::vector<Expr> lower_assign(const Node& node, Builder& builder) {
  return {call("Identity", {LoweredNode(node, builder).x(1)})};
}

}  // namespace graft
