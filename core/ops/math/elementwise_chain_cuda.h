#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace graft {

/// What the interpreter can do to elements: r = f(x, y, z) with parameters p and q. Values are f32;
/// a bool is 0 or 1.
enum class LinkOp : std::int16_t {
  copy,
  add,
  subtract,
  multiply,
  divide,
  larger,
  smaller,
  negate,
  absolute,
  square_root,
  reciprocal,
  exponential,
  logarithm,
  error_function,
  sign,
  floor,
  ceiling,
  round,
  power,
  tanh,
  sigmoid,
  softplus,
  softsign,
  relu,
  leaky_relu,
  prelu,
  hard_sigmoid,
  hard_swish,
  gelu,
  gelu_tanh,
  swish,
  mish,
  thresholded_relu,
  elu,
  selu,
  celu,
  arc_sine,
  arc_cosine,
  arc_tangent,
  sine,
  cosine,
  tangent,
  hyperbolic_sine,
  hyperbolic_cosine,
  area_sine,
  area_cosine,
  area_tangent,
  clip,
  tanh_gradient,
  sigmoid_gradient,
  relu_gradient,
  leaky_relu_gradient,
  gelu_gradient,
  gelu_tanh_gradient,
  swish_gradient,
  mish_gradient,
  hard_swish_gradient,
  equal,
  less,
  less_or_equal,
  greater,
  greater_or_equal,
  both,
  either,
  one_of,
  invert,
  is_nan,
  choose,
  within,
};

/// One op of a chain. Operands and result are slots: places where each thread keeps a value.
struct ChainLink {
  LinkOp op = LinkOp::copy;
  std::int16_t x = 0;
  std::int16_t y = 0;
  std::int16_t z = 0;
  std::int16_t to = 0;
  float p = 0.0F;
  float q = 0.0F;
  bool rounds_to_bf16 = false;  ///< the result is kept as bf16 holds it
};

enum class ChainType : std::int16_t { f32, bf16, boolean };

/// A program for the interpreter, which passes over memory once whatever its length: it loads
/// operands into the slots 0, 1, ..., runs the links, and stores results. An operand moves through
/// memory as the result does, stands still, or broadcasts by steps; a literal lies in no memory.
/// As small as a kernel's arguments have to be.
struct ChainProgram {
  static constexpr int kMostOperands = 10;
  static constexpr int kMostResults = 8;
  static constexpr int kMostLinks = 48;
  static constexpr int kMostSlots = 24;
  static constexpr int kMostAxes = 6;

  enum class Walk : std::int16_t { along, still, by_steps, literal };
  struct Operand {
    const void* data = nullptr;
    std::int64_t steps[kMostAxes] = {};
    float literal = 0.0F;
    ChainType type = ChainType::f32;
    Walk walk = Walk::along;
  };
  struct Result {
    void* data = nullptr;
    ChainType type = ChainType::f32;
    std::int16_t slot = 0;
  };

  std::int64_t size = 0;  ///< elements of each result
  std::int64_t dims[kMostAxes] = {};
  int axes = 0;
  int operand_count = 0;
  int link_count = 0;
  int result_count = 0;
  int slot_count = 0;
  Operand operands[kMostOperands];
  ChainLink links[kMostLinks];
  Result results[kMostResults];
};

/// Gives the program to the stream. A result may lie where an operand that moves along does.
void run_chain(const ChainProgram& program, cudaStream_t stream);

}  // namespace graft
