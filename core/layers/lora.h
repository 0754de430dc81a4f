#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/graph/model.h"

/// Low-rank adapters (LoRA: Hu et al., arXiv 2106.09685) beside the weights of a model: a layer
/// y = x W becomes y = x W + scale (x A^T) B^T, where A [rank,in] and B [out,rank] train and W does
/// not. Names and shapes are those of PEFT (huggingface.co/docs/peft): "fc1.lora_A.weight". Of a
/// convolution, A is [rank,in,*kernel] and B [out,rank,1,...].
namespace graft::edit {

struct LoraOptions {
  /// A layer gets an adapter if this regular expression (RE2) matches its whole name, that of its
  /// weight, or that of its node.
  std::string pattern = ".*";
  std::int64_t rank = 8;
  /// scale = alpha / rank. Absent: the rank, so that the scale is 1.
  std::optional<double> alpha{};
  /// Draws A, together with its name.
  std::uint64_t seed = 0;
};

/// What became of the layers that were meant.
struct LoraReport {
  std::vector<std::string> adapted;   ///< names of layers
  std::vector<std::string> left_out;  ///< "MatMul node 'x': why"
};

/// An adapter without its model.
struct LoraAdapter {
  std::string layer;
  Tensor a;
  Tensor b;
  double alpha = 0.0;
};

/// Gives adapters to the MatMuls, Gemms and Convs with a weight (also one that is dequantized, and
/// to MatMulNBits of com.microsoft) that `options` mean: A as PyTorch starts a Linear, evenly from
/// [-1/sqrt(in), 1/sqrt(in)), B zeros, so that the model's results stay the same. Everything else
/// is frozen (core/graph/frozen.h). Layers are called as their weight, without ".weight", as their
/// bias where the exporter made the weight, or as their node. A call that throws leaves the model
/// as it was.
///
/// Throws Error{argument}, with names, if no layer matches or can have an adapter, or if rank or
/// alpha are out of range; what inference throws.
LoraReport add_lora(Model& model, const LoraOptions& options);

/// Adds what each adapter computes to its layer's weight and takes the adapter away: results differ
/// by rounding. A weight that was quantized becomes a float tensor. What was frozen trains again.
/// Returns the names of the layers. Throws Error{argument} if there is no adapter, Error{model} if
/// one was changed since, Error{unsupported} if a weight cannot be known.
std::vector<std::string> merge_lora(Model& model);

/// The adapters of a model; their tensors are shared with it. Throws Error{model} as above.
std::vector<LoraAdapter> lora_adapters(const Model& model);

/// Gives a model without them these adapters, and freezes the rest. Throws Error{argument}, with
/// names, for layers that there are not or that are given twice and for an alpha that is no number
/// above 0, Error{shape} for tensors that do not fit theirs, and then leaves the model as it was.
void apply_lora(Model& model, const std::vector<LoraAdapter>& adapters);

}  // namespace graft::edit
