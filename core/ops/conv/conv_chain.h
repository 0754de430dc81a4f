#pragma once

#include <memory>
#include <vector>

#include "core/ops/kernel.h"

/// What a ConvChain stands for: a Conv, then element-wise ops on its result.
namespace graft::conv_chain {

inline constexpr int kX = 0;
inline constexpr int kW = 1;
inline constexpr int kBias = 2;
inline constexpr int kFirstOperand = 3;

/// A node by itself, in a graph of its own: kernels are made for it.
struct Alone {
  std::unique_ptr<Graph> graph;
  const Node* node;
};

/// The body of a ConvChain: element-wise ops, without types. Throws Error{model} if there is none.
const std::shared_ptr<Graph>& body_of(const Node& node);
/// Which of its inputs is the convolution's result; the others are the operands, in order.
int place_of_result(const Node& node);
/// The attributes that are those of the Conv.
Attributes conv_attributes(const Node& node);

/// The convolution from an x to a y like those, with these attributes. Not defined, `w` is an input
/// as well: else what is known of it before the run.
struct ConvSpec {
  TensorSpec x;
  TensorSpec w;
  TensorSpec y;
  Tensor known_w;
  Attributes attributes;
};
/// That of the whole node.
ConvSpec whole_convolution(const KernelRequest& request);
Alone convolution_alone(const ConvSpec& spec, bool has_bias);

/// What the chain does, in place, to a stretch of the result's elements, in the order of memory.
class ChainPart {
 public:
  /// Of `count` elements.
  ChainPart(const KernelRequest& request, std::int64_t count);

  /// Whether there is a kernel for it.
  explicit operator bool() const { return static_cast<bool>(kernel_); }
  /// On the elements from the `first` on.
  void run(const KernelArgs& args, std::int64_t first) const;

 private:
  Kernel kernel_;
  std::size_t place_;                 ///< of the result among the inputs
  std::vector<std::size_t> advance_;  ///< of each input: bytes for an element of the result
  std::size_t width_;                 ///< bytes of such an element
};

}  // namespace graft::conv_chain
