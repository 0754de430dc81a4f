#pragma once

namespace graft {

/// The arithmetic of matrix products and convolutions in a step. bf16: their operands and results
/// are rounded to 8 bits of mantissa and summed in f32; parameters, updates and all else stay f32.
enum class Precision { f32, bf16 };

}  // namespace graft
