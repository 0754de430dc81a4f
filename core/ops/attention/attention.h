#pragma once

#include <vector>

#include "core/ops/infer.h"
#include "core/ops/sample.h"

namespace graft {

/// Types and checks of Attention.
void infer_attention(InferContext& context);
std::vector<Sample> attention_samples();

}  // namespace graft
