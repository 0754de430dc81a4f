#pragma once

#include <optional>
#include <vector>

namespace graft {

class Expr;

/// Limits on gradients before an update; both may be set: values first, then the norm.
struct Clip {
  /// The Euclidean norm of all gradients together is scaled down to at most this.
  std::optional<float> norm;
  /// Each element is moved into [-value, value].
  std::optional<float> value;
};

/// Throws Error{argument} for a limit that is not above 0.
void check(const Clip& clip);

/// Adds the limiting nodes and returns the limited gradients, in order.
/// norm: g * min(1, norm / (total + 1e-6)), as torch.nn.utils.clip_grad_norm_.
/// Throws Error{argument} for a limit that is not above 0.
std::vector<Expr> clip_gradients(const Clip& clip, const std::vector<Expr>& gradients);

}  // namespace graft
