#pragma once

#include <cstdint>
#include <optional>

#include "core/base/dtype.h"
#include "core/base/shape.h"
#include "core/graph/node.h"

namespace graft {

/// The numbers that a quantized type holds: [low, high].
struct QuantizedRange {
  double low;
  double high;
};

/// Of the integer types up to 16 bits, the f8 types but f8e8m0, and f4e2m1; nullopt for others.
std::optional<QuantizedRange> quantized_range(DType dtype);

/// Which scale belongs to which element: one for all, one for each place along an axis, or one for
/// each `block` places. x is [outer, axis, inner], scales are taken at
/// outer * outer_step + axis / block * axis_step + inner * inner_step.
struct ScaleLayout {
  /// From the attributes axis and block_size. Throws Error{shape} naming the node if they and the
  /// shapes do not fit.
  ScaleLayout(const Node& node, const Shape& x, const Shape& scale);

  int axis_index = 0;  ///< meaningless for one scale
  std::int64_t outer = 1;
  std::int64_t axis = 1;
  std::int64_t inner = 1;
  std::int64_t block = 1;
  std::int64_t outer_step = 0;
  std::int64_t axis_step = 0;
  std::int64_t inner_step = 0;

  bool is_one() const { return axis_step == 0 && !is_blocked(); }
  bool is_blocked() const { return inner_step != 0; }
};

/// Walks the elements in order and tells where the scale of each lies, without divisions.
class ScaleWalk {
 public:
  /// Stands at element `first`.
  ScaleWalk(const ScaleLayout& layout, std::int64_t first)
      : layout_(layout),
        inner_(layout.inner == 0 ? 0 : first % layout.inner),
        axis_(layout.inner == 0 ? 0 : first / layout.inner % layout.axis),
        within_(axis_ % layout.block),
        at_(layout.inner == 0 ? 0
                              : first / layout.inner / layout.axis * layout.outer_step +
                                    axis_ / layout.block * layout.axis_step) {}

  /// The scale of this element; goes on to the next.
  std::int64_t next() {
    const std::int64_t found = at_ + inner_ * layout_.inner_step;
    if (++inner_ < layout_.inner) return found;
    inner_ = 0;
    if (++within_ == layout_.block) {
      within_ = 0;
      at_ += layout_.axis_step;
    }
    if (++axis_ < layout_.axis) return found;
    // The next row of blocks starts behind the last, which may be cut short.
    if (within_ != 0) at_ += layout_.axis_step;
    within_ = 0;
    axis_ = 0;
    if (!layout_.is_blocked()) at_ = 0;
    return found;
  }

 private:
  const ScaleLayout& layout_;
  std::int64_t inner_;
  std::int64_t axis_;
  std::int64_t within_;
  std::int64_t at_;
};

}  // namespace graft
