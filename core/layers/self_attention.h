#pragma once

#include "core/layers/layer_context.h"

namespace graft::layers {

/// Self-attention as the layer says, over x [N,length,features], where query i sees key j if
/// mask[i,j]: bool [length,length]. Null: each sees all.
Value* attend(LayerContext& context, const MultiHeadAttention& layer, Value* input, Value* mask);

}  // namespace graft::layers
