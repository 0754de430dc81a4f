#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/graph/node.h"

namespace graft {

/// The greatest size, stride, dilation or pad of an axis: products of two never overflow.
inline constexpr std::int64_t kMostPerAxis = (std::int64_t{1} << 31) - 1;

/// Outputs or taps in [first, last).
struct Span {
  std::int64_t first;
  std::int64_t last;
  constexpr std::int64_t count() const { return last > first ? last - first : 0; }
};

/// A sliding window along one spatial axis of Conv or pooling: output `o` meets, by tap `k` of
/// `kernel`, the input element o * stride + k * dilation - pad_begin, if there is one.
struct WindowAxis {
  std::int64_t input = 1;
  std::int64_t output = 1;
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  std::int64_t dilation = 1;
  std::int64_t pad_begin = 0;
  std::int64_t pad_end = 0;

  /// Input elements from the first tap to the last.
  std::int64_t extent() const { return (kernel - 1) * dilation + 1; }
  /// Where tap `k` of output `o` reads; may lie outside of the input.
  constexpr std::int64_t position(std::int64_t o, std::int64_t k) const {
    return o * stride + k * dilation - pad_begin;
  }
  /// The outputs for which tap `k` reads inside the input.
  Span outputs_of_tap(std::int64_t k) const;
  /// The taps of output `o` that read positions in [low, high).
  constexpr Span taps_between(std::int64_t o, std::int64_t low, std::int64_t high) const {
    const std::int64_t start = position(o, 0);
    const std::int64_t first = start >= low ? 0 : (low - start + dilation - 1) / dilation;
    const std::int64_t room = high - 1 - start;
    const std::int64_t last = room < 0 ? 0 : std::min(kernel, room / dilation + 1);
    return {std::min(first, last), last};
  }
  /// The taps of output `o` that read inside the input.
  constexpr Span taps_of_output(std::int64_t o) const { return taps_between(o, 0, input); }
  /// The output that reads position `at` by tap `k`, or -1.
  constexpr std::int64_t output_of_tap(std::int64_t at, std::int64_t k) const {
    const std::int64_t start = at + pad_begin - k * dilation;
    if (start < 0 || start % stride != 0) return -1;
    const std::int64_t o = start / stride;
    return o < output ? o : -1;
  }
};

/// Depth, height and width; lower ranks have leading axes of size 1.
using WindowAxes = std::array<WindowAxis, 3>;

/// The attributes strides, dilations, pads, auto_pad and ceil_mode of a node, checked, with
/// defaults filled in (https://onnx.ai/onnx/operators/onnx__Conv.html, onnx__MaxPool.html).
class WindowAttributes {
 public:
  enum class AutoPad { none, valid, same_upper, same_lower };

  /// `kernel` has one size a spatial axis. Throws Error{shape} naming the node if a list has the
  /// wrong length, or a number is out of range.
  WindowAttributes(const Node& node, std::vector<std::int64_t> kernel);
  /// The kernel is the attribute kernel_shape, which must be there.
  WindowAttributes(const Node& node, int spatial_rank);

  int rank() const { return static_cast<int>(kernel_.size()); }
  /// Axis `index` for an input of `input` elements, with auto_pad resolved to pads.
  /// Throws Error{shape} if the window does not fit into the padded input.
  WindowAxis axis(int index, std::int64_t input) const;
  /// The size of the output's axis, where it is known: a window that keeps sizes keeps symbols.
  Dim output_dim(int index, const Dim& input) const;
  /// Axis `index` as the attributes give it: input and output stay 1.
  WindowAxis bare_axis(int index) const;
  AutoPad auto_pad() const { return auto_pad_; }

 private:
  void read(const Node& node);
  static AutoPad read_auto_pad(const Node& node);

  const Node& node_;
  AutoPad auto_pad_ = AutoPad::none;
  bool ceil_mode_ = false;
  std::vector<std::int64_t> kernel_;
  std::vector<std::int64_t> strides_;
  std::vector<std::int64_t> dilations_;
  std::vector<std::int64_t> pads_;
};

/// A list of `count` numbers in [least, 2^31). `found` empty gives `count` times `fallback`.
/// Throws Error{shape} naming node and attribute.
std::vector<std::int64_t> checked_list(const Node& node, std::string_view name,
                                       std::vector<std::int64_t> found, int count,
                                       std::int64_t fallback, std::int64_t least);

/// The attributes with `shape` among them: the shape of an internal op's output.
Attributes with_shape(Attributes attributes, const Shape& shape);

/// The attributes strides, dilations and pads that give these axes.
Attributes window_to_attributes(const std::vector<WindowAxis>& axes);

}  // namespace graft
