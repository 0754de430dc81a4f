#pragma once

#include <vector>

#include "core/ops/infer.h"
#include "core/ops/sample.h"

namespace graft {

/// Where these stand among the inputs of ops of attention.
inline constexpr int kQuery = 0;
inline constexpr int kKey = 1;
inline constexpr int kValue = 2;

/// Types and checks of Attention.
void infer_attention(InferContext& context);
std::vector<Sample> attention_samples();

}  // namespace graft
