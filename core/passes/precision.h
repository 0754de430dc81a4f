#pragma once

namespace graft {

/// The arithmetic of matrix products and convolutions in a step. tf32: tensor cores of a card round
/// their operands to 11 bits of mantissa; what has no such form, and the CPU, computes in f32.
/// bf16: operands and results are rounded to 8 bits. Sums are f32; parameters, updates and all else
/// stay f32.
enum class Precision { f32, tf32, bf16 };

}  // namespace graft
