#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/layers/initializer.h"
#include "core/layers/norm_layers.h"
#include "core/layers/sequence_layers.h"

// Layers as plain data: what `edit::append` and fresh nets are written with. Defaults are
// PyTorch's. All layers have a name, which their output value and node get and which starts the
// names of their parameters ("head.weight"); an empty one is replaced by the kind and a number
// ("linear1"). Images are [N,C,*spatial], sequences and vectors [N,*,features].
//
// Weights start as `init` says or, without one, as AppendOptions::init or else PyTorch's layer
// does; they are drawn by `seed` or else by AppendOptions::seed.
//
// A list of spatial numbers (kernel, stride, ...) has one number a spatial dim, or one for all.

namespace graft {

/// y = x W^T + b over the last dim. The weight is [out,in] (Gemm) for x of rank 2, else [in,out]
/// (MatMul), and so it is without a bias before opset 11.
struct Linear {
  std::string name{};
  std::int64_t out = 0;
  bool bias = true;
  std::optional<std::uint64_t> seed{};
  std::optional<Init> init{};
};

/// The cosines of the angles between x [N,in] and the rows of a weight [out,in]: [N,out], what
/// arcface judges.
struct Cosine {
  std::string name{};
  std::int64_t out = 0;
  std::optional<std::uint64_t> seed{};
  std::optional<Init> init{};
};

/// A convolution of x [N,in,*spatial] to [N,out,...], with a weight [out,in/groups,*kernel] and a
/// bias [out]; `groups` divides both channel counts.
struct Conv {
  std::string name{};
  std::int64_t out = 0;
  std::vector<std::int64_t> kernel = {3};
  std::vector<std::int64_t> stride = {1};
  std::vector<std::int64_t> padding = {0};
  std::vector<std::int64_t> dilation = {1};
  std::int64_t groups = 1;
  bool bias = true;
  std::optional<std::uint64_t> seed{};
  std::optional<Init> init{};
};

/// The transpose of a convolution: x [N,in,*spatial] to [N,out,...], where a dim of n becomes
/// (n - 1) stride - 2 padding + dilation (kernel - 1) + output_padding + 1. The weight is
/// [in,out/groups,*kernel], fan_in, as PyTorch counts it, out/groups times the kernel.
struct ConvTranspose {
  std::string name{};
  std::int64_t out = 0;
  std::vector<std::int64_t> kernel = {2};
  std::vector<std::int64_t> stride = {1};
  std::vector<std::int64_t> padding = {0};
  std::vector<std::int64_t> output_padding = {0};
  std::vector<std::int64_t> dilation = {1};
  std::int64_t groups = 1;
  bool bias = true;
  std::optional<std::uint64_t> seed{};
  std::optional<Init> init{};
};

/// max(x, 0).
struct Relu {
  std::string name{};
};
/// min(max(x, 0), 6).
struct Relu6 {
  std::string name{};
};
/// x where it is positive, alpha * x elsewhere.
struct LeakyRelu {
  std::string name{};
  float alpha = 0.01F;
};
/// 1 / (1 + exp(-x)).
struct Sigmoid {
  std::string name{};
};
/// The hyperbolic tangent of x.
struct Tanh {
  std::string name{};
};
/// x * Phi(x), where Phi is the normal distribution's, not its approximation by tanh. Needs opset
/// 9; written with Erf before opset 20.
struct Gelu {
  std::string name{};
};
/// x * sigmoid(x).
struct Silu {
  std::string name{};
};

/// exp(x) over its sum along `axis`. Before opset 13 an `axis` other than the last needs rank 2
/// (Error{unsupported} otherwise).
struct Softmax {
  std::string name{};
  std::int64_t axis = -1;
};
/// The logarithm of Softmax, under the same condition.
struct LogSoftmax {
  std::string name{};
  std::int64_t axis = -1;
};

/// The largest element of each window of x [N,C,*spatial]. Padding is never the largest.
struct MaxPool {
  std::string name{};
  std::vector<std::int64_t> kernel = {2};
  /// As large as the kernel when empty.
  std::vector<std::int64_t> stride{};
  std::vector<std::int64_t> padding = {0};
};
/// The mean of each window of x [N,C,*spatial].
struct AveragePool {
  std::string name{};
  std::vector<std::int64_t> kernel = {2};
  /// As large as the kernel when empty.
  std::vector<std::int64_t> stride{};
  std::vector<std::int64_t> padding = {0};
  /// Whether the zeros of the padding count as elements.
  bool count_padding = true;
};
/// The mean of each channel: [N,C,*spatial] becomes [N,C,1,...].
struct GlobalAveragePool {
  std::string name{};
};

/// Joins all axes but the first: [N,...] becomes [N,product of the rest].
struct Flatten {
  std::string name{};
};

/// The same elements in order, [N,...] as [N,*shape]; one dim may be -1: what is left.
struct Reshape {
  std::string name{};
  std::vector<std::int64_t> shape{};
};

/// When training, sets each element to 0 with probability `ratio`, in [0, 1), and divides the
/// others by 1 - ratio; else x. Source: Srivastava et al., JMLR 15, 2014.
struct Dropout {
  std::string name{};
  float ratio = 0.5F;
};

struct Layer;

/// body(x) + shortcut(x), which must have one shape; without a shortcut body(x) + x.
struct Residual {
  std::string name{};
  std::vector<Layer> body;
  std::vector<Layer> shortcut;
};

using AnyLayer = std::variant<Linear, Cosine, Conv, ConvTranspose, BatchNorm, LayerNorm, GroupNorm,
                              Embedding, Lstm, Gru, MultiHeadAttention, Relu, Relu6, LeakyRelu,
                              Sigmoid, Tanh, Gelu, Silu, Softmax, LogSoftmax, MaxPool, AveragePool,
                              GlobalAveragePool, Flatten, Reshape, Dropout, Residual>;

/// One of these; a type of its own, so that Residual can hold layers.
struct Layer : AnyLayer {
  using AnyLayer::AnyLayer;
};

}  // namespace graft
