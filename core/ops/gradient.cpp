#include "core/ops/gradient.h"

#include "core/base/at.h"
#include "core/ops/builder.h"

namespace graft {

Gradient::Gradient(const Node& node, Builder& builder, std::vector<Expr> output_gradients,
                   std::vector<bool> needed)
    : node_(node),
      builder_(builder),
      output_gradients_(std::move(output_gradients)),
      needed_(std::move(needed)) {}

Expr Gradient::x(int index) const {
  return builder_.expr(node_.input(index));
}

Expr Gradient::y(int index) const {
  return builder_.expr(node_.output(index));
}

bool Gradient::has_dy(int index) const {
  return index < output_count() && at(output_gradients_, index);
}

Expr Gradient::dy(int index) const {
  if (has_dy(index)) return at(output_gradients_, index);
  return node_.output(index) == nullptr ? Expr() : zeros_like(y(index));
}

std::string_view Backward::kind() const {
  if (rule() != nullptr) return "rule";
  return decomposition() != nullptr ? "decomposition" : "none";
}

}  // namespace graft
