#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/layers/initializer.h"

// Layers for sequences [N,length,features]; see core/layers/layer.h.

namespace graft {

/// Rows of a weight [count,size], by index: integers [...] become [...,size]. An index below 0
/// counts from the back. Starts as N(0, 1).
struct Embedding {
  std::string name{};
  std::int64_t count = 0;
  std::int64_t size = 0;
  std::optional<std::uint64_t> seed{};
  std::optional<Init> init{};
};

/// What a recurrent layer gives.
enum class Steps : std::uint8_t {
  all,   ///< the state after each step: [N,length,directions * hidden]
  last,  ///< the state at the end of each direction: [N,directions * hidden]
};

/// Long short-term memory over x [N,length,features], from states of zeros, as torch.nn.LSTM with
/// batch_first. `depth` layers, each of one direction or both. Layer i holds, in ONNX's form, with
/// the gates input, output, forget, cell: weight_ih_l[i] [directions,4 hidden,features],
/// weight_hh_l[i] [directions,4 hidden,hidden] and bias_l[i] [directions,8 hidden], all starting as
/// U(-b, b), b = 1/sqrt(hidden).
struct Lstm {
  std::string name{};
  std::int64_t hidden = 0;
  std::int64_t depth = 1;
  bool bidirectional = false;
  Steps steps = Steps::all;
  std::optional<std::uint64_t> seed{};
  std::optional<Init> init{};
};

/// Gated recurrent units, alike: as torch.nn.GRU, with three gates in ONNX's order update, reset,
/// hidden.
struct Gru {
  std::string name{};
  std::int64_t hidden = 0;
  std::int64_t depth = 1;
  bool bidirectional = false;
  Steps steps = Steps::all;
  std::optional<std::uint64_t> seed{};
  std::optional<Init> init{};
};

/// Self-attention of x [N,length,features] with `heads` heads, which divide the features, as
/// torch.nn.MultiheadAttention with batch_first. in_proj.weight [features,3 features] makes
/// queries, keys and values (it starts as Xavier-uniform), out_proj.weight [features,features] the
/// result; biases start at 0. Source: Vaswani et al., arXiv 1706.03762.
struct MultiHeadAttention {
  std::string name{};
  std::int64_t heads = 1;
  bool bias = true;
  std::optional<std::uint64_t> seed{};
  std::optional<Init> init{};
};

}  // namespace graft
