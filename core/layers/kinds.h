#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "core/layers/layer_context.h"

// What `add_layer` calls for each kind of layer, and what the kinds share.

namespace graft::layers {

Value* add(LayerContext& context, const Linear& layer, Value* input);
Value* add(LayerContext& context, const Cosine& layer, Value* input);
Value* add(LayerContext& context, const Conv& layer, Value* input);
Value* add(LayerContext& context, const ConvTranspose& layer, Value* input);
Value* add(LayerContext& context, const BatchNorm& layer, Value* input);
Value* add(LayerContext& context, const LayerNorm& layer, Value* input);
Value* add(LayerContext& context, const GroupNorm& layer, Value* input);
Value* add(LayerContext& context, const Embedding& layer, Value* input);
Value* add(LayerContext& context, const Lstm& layer, Value* input);
Value* add(LayerContext& context, const Gru& layer, Value* input);
Value* add(LayerContext& context, const MultiHeadAttention& layer, Value* input);
Value* add(LayerContext& context, const Relu& layer, Value* input);
Value* add(LayerContext& context, const Relu6& layer, Value* input);
Value* add(LayerContext& context, const LeakyRelu& layer, Value* input);
Value* add(LayerContext& context, const Sigmoid& layer, Value* input);
Value* add(LayerContext& context, const Tanh& layer, Value* input);
Value* add(LayerContext& context, const Gelu& layer, Value* input);
Value* add(LayerContext& context, const Silu& layer, Value* input);
Value* add(LayerContext& context, const Softmax& layer, Value* input);
Value* add(LayerContext& context, const LogSoftmax& layer, Value* input);
Value* add(LayerContext& context, const MaxPool& layer, Value* input);
Value* add(LayerContext& context, const AveragePool& layer, Value* input);
Value* add(LayerContext& context, const GlobalAveragePool& layer, Value* input);
Value* add(LayerContext& context, const Flatten& layer, Value* input);
Value* add(LayerContext& context, const Reshape& layer, Value* input);
Value* add(LayerContext& context, const Dropout& layer, Value* input);
Value* add(LayerContext& context, const Residual& layer, Value* input);

/// The input's shape. `who` starts errors: "conv 'conv1'".
/// Throws Error{shape} unless its rank is known and in [least, most].
const SymShape& shape_of(std::string_view who, const Value& input, int least, int most);

/// The dim of `axis` (from the back when negative) of a shape that `shape_of` has checked.
/// Throws Error{shape} if it is not a known positive number.
std::int64_t features_of(std::string_view who, const Value& input, int axis);

/// Throws Error{argument} naming `field` unless number >= least.
void require_at_least(std::string_view who, std::string_view field, std::int64_t number,
                      std::int64_t least);

/// Throws Error{argument} naming `field` unless the number is finite and in [least, most].
void require_within(std::string_view who, std::string_view field, double number,
                    double least = std::numeric_limits<double>::lowest(),
                    double most = std::numeric_limits<double>::max());

/// One number a spatial dim, from a list of one or of all of them.
/// Throws Error{argument} if the list has another length or a number below `least`.
std::vector<std::int64_t> per_dim(std::string_view who, std::string_view field,
                                  const std::vector<std::int64_t>& numbers, int dims,
                                  std::int64_t least);

/// kernel_shape, strides and (symmetric) pads, as Conv and the poolings have them; `stride` is the
/// kernel when empty.
Attributes window(std::string_view who, int dims, const std::vector<std::int64_t>& kernel,
                  const std::vector<std::int64_t>& stride,
                  const std::vector<std::int64_t>& padding);

}  // namespace graft::layers
