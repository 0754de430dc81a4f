#pragma once

#include <cstdint>
#include <string_view>

namespace graft {

/// How a weight starts, by the definitions of torch.nn.init. Each weight depends on its seed, name
/// and shape only. fan_in and fan_out are PyTorch's: of a Linear its features in and out, of a
/// convolution its channels in (of a group) and out times the elements of the kernel. The bias of a
/// layer that names an initializer starts at 0; without one, at what PyTorch's layer starts with.
/// All numbers are finite.
///
///     Linear{.name = "head", .out = 10, .init = Init{.kind = Init::normal, .deviation = 0.02}}
struct Init {
  enum Kind : std::uint8_t {
    uniform_fan_in,   ///< U(-b, b), b = 1/sqrt(fan_in): what PyTorch's Linear and Conv start with
    kaiming_uniform,  ///< U(-b, b), b = sqrt(6 / ((1 + slope^2) fan)). He et al., arXiv 1502.01852
    kaiming_normal,   ///< N(0, 2 / ((1 + slope^2) fan)). The same source
    xavier_uniform,   ///< U(-b, b), b = gain sqrt(6 / (fan_in + fan_out)). Glorot, Bengio, 2010
    xavier_normal,    ///< N(0, 2 gain^2 / (fan_in + fan_out)). The same source
    normal,           ///< N(mean, deviation^2)
    constant,         ///< `value`
  };
  Kind kind = uniform_fan_in;
  /// Kaiming: whether `fan` is fan_out, which keeps the variance of gradients, not of values.
  bool fan_out = false;
  /// Kaiming: of the leaky ReLU that follows; 0 is a ReLU.
  double slope = 0;
  /// Xavier.
  double gain = 1;
  double mean = 0;
  double deviation = 1;
  double value = 0;
};

/// How many numbers an output and an input of a weight meet.
struct Fans {
  std::int64_t in = 1;
  std::int64_t out = 1;
};

/// "kaiming_normal", and back; zeros is a constant of 0. Throws Error{argument}, listing the names,
/// for another.
Init init_of(std::string_view name);

}  // namespace graft
