#include "core/passes/microsoft.h"

#include <algorithm>

#include "core/base/at.h"
#include "core/ops/infer.h"
#include "core/passes/microsoft_attention_internal.h"
#include "core/passes/microsoft_blocks_internal.h"
#include "core/passes/splice_internal.h"

namespace graft::passes {
namespace {

constexpr std::string_view kDomain = "com.microsoft";
/// onnxruntime has it in the standard's domain, which has not.
constexpr std::string_view kRmsNorm = "SimplifiedLayerNormalization";

Outputs expand_fused_mat_mul(const MicrosoftCall& c) {
  c.require("transBatchA", 0);
  c.require("transBatchB", 0);
  const Expr a = c.integer("transA") != 0 ? c.swapped(c.required(0)) : c.required(0);
  const Expr b = c.integer("transB") != 0 ? c.swapped(c.required(1)) : c.required(1);
  const double alpha = c.number("alpha", 1.0F);
  return {alpha == 1.0 ? matmul(a, b) : matmul(a, b) * alpha};
}

Outputs expand_fused_gemm(const MicrosoftCall& c) {
  Attributes attributes = c.node().attributes;
  std::vector<float> numbers;
  for (const char* name : {"activation_alpha", "activation_beta", "activation_gamma"}) {
    if (attributes.has(name)) numbers.push_back(attributes.get_float(name, 0.0F));
    attributes.erase(name);
  }
  const std::string activation = attributes.get_string("activation", "");
  attributes.erase("activation");
  const Expr y = call("Gemm", {c.required(0), c.required(1), c.input(2)}, attributes);
  return {activated(c, y, activation, numbers)};
}

Outputs expand_fused_conv(const MicrosoftCall& c) {
  return {fused_conv(c, c.required(1))};
}

Expr gelu(const Expr& x, const char* approximate) {
  return call("Gelu", {x}, {{"approximate", approximate}});
}

Outputs expand_bias_gelu(const MicrosoftCall& c) {
  return {gelu(c.required(0) + c.required(1), "none")};
}

Outputs expand_gelu(const MicrosoftCall& c) {
  return {gelu(c.required(0), "none")};
}

Outputs expand_fast_gelu(const MicrosoftCall& c) {
  const Expr x = c.required(0);
  return {gelu(c.has(1) ? x + c.input(1) : x, "tanh")};
}

Outputs expand_quick_gelu(const MicrosoftCall& c) {
  return {
      call("Swish", {c.required(0)}, {{"alpha", c.node().attributes.get_float("alpha", 1.702F)}})};
}

/// A layer normalization of the last axis.
Expr normalized(const MicrosoftCall& c, const Expr& x, const Expr& scale, const Expr& bias) {
  const float epsilon = c.node().attributes.get_float("epsilon", 1e-12F);
  return call("LayerNormalization", {x, scale, bias}, {{"axis", -1}, {"epsilon", epsilon}});
}

/// input + skip + bias, normalized; the sum is the fourth output.
Outputs expand_skip_layer_norm(const MicrosoftCall& c) {
  Expr sum = c.required(0) + c.required(1);
  if (c.has(4)) sum = sum + c.input(4);
  return {normalized(c, sum, c.required(2), c.input(3)), {}, {}, sum};
}

Outputs expand_skip_rms_norm(const MicrosoftCall& c) {
  Expr sum = c.required(0) + c.required(1);
  if (c.has(3)) sum = sum + c.input(3);
  const float epsilon = c.node().attributes.get_float("epsilon", 1e-12F);
  const Expr y =
      call("RMSNormalization", {sum, c.required(2)}, {{"axis", -1}, {"epsilon", epsilon}});
  return {y, {}, {}, sum};
}

/// RMSNormalization before the standard had it.
Outputs expand_rms_norm(const MicrosoftCall& c) {
  Attributes attributes{{"axis", c.integer("axis", -1)},
                        {"epsilon", c.node().attributes.get_float("epsilon", 1e-5F)}};
  return {call("RMSNormalization", {c.required(0), c.required(1)}, attributes)};
}

/// Words, their places and perhaps their segments, added up and normalized. The second output has
/// the number of words that the mask keeps.
Outputs expand_embed_layer_norm(const MicrosoftCall& c) {
  const Expr ids = c.required(0);
  const Expr places = c.has(8) ? c.input(8) : c.range_along(ids, 1);
  Expr sum = call("Gather", {c.required(2), ids}) + call("Gather", {c.required(3), places});
  if (c.has(1)) sum = sum + call("Gather", {c.required(4), c.input(1)});
  const Expr flags = cast(c.has(7) ? c.input(7) : ids * constant_like(ids, 0.0), DType::i32);
  const Expr count = call("ReduceSum", {flags, c.ints({1})}, {{"keepdims", 0}});
  return {normalized(c, sum, c.required(5), c.required(6)), count, sum};
}

/// The numbers of `bits` that lie in bytes [...,n], the low ones first: [..., n * 8 / bits].
Expr unpacked(const MicrosoftCall& c, const Expr& bytes, std::int64_t bits,
              const std::vector<std::int64_t>& target) {
  constexpr std::int64_t kByte = 8;
  const Expr mask = constant_like(bytes, static_cast<double>((1 << bits) - 1));
  std::vector<Expr> parts;
  for (std::int64_t shift = 0; shift < kByte; shift += bits) {
    const Expr moved = call("BitShift", {bytes, constant_like(bytes, static_cast<double>(shift))},
                            {{"direction", "RIGHT"}});
    parts.push_back(unsqueeze(call("BitwiseAnd", {moved, mask}), {-1}));
  }
  const Expr all = parts.size() == 1 ? parts[0] : call("Concat", parts, {{"axis", -1}});
  return c.reshaped(all, target);
}

/// One zero a block, [N,blocks,1].
Expr zeros_of_blocks(const MicrosoftCall& c, const Expr& like, std::int64_t rows,
                     std::int64_t blocks, std::int64_t bits) {
  if (!c.has(3)) return constant_like(like, static_cast<double>(1 << (bits - 1)));
  const Expr given = c.input(3);
  if (given.dtype() != DType::u8) return c.reshaped(cast(given, like.dtype()), {rows, blocks, 1});
  const Expr all = unpacked(c, c.reshaped(given, {rows, -1}), bits, {rows, -1});
  const Expr used = call("Slice", {all, c.ints({0}), c.ints({blocks}), c.ints({1})});
  return c.reshaped(cast(used, like.dtype()), {rows, blocks, 1});
}

/// Scales and zeros are part of the packed numbers, which do not train.
Outputs expand_mat_mul_n_bits(const MicrosoftCall& c) {
  for (const int i : {2, 3}) {
    if (c.has(i)) c.node().input(i)->role = Role::buffer;
  }
  const Expr y = matmul(c.required(0), unpacked_weight(c.node(), c.builder()));
  return {c.has(5) ? y + c.input(5) : y};
}

/// One scale of one element, or one a column.
Expr scale_of(const MicrosoftCall& c, int index) {
  const Expr scale = c.required(index);
  return c.rank(scale) == 1 && c.dim(scale, 0) == 1 ? call("Squeeze", {scale}) : scale;
}

/// (a - a0) (b - b0) + c, of integers, times alpha and both scales; quantized again where y has a
/// scale.
Outputs expand_q_gemm(const MicrosoftCall& c) {
  const bool is_turned = c.integer("transB") != 0;
  const auto numbers = [&](int first, std::int64_t axis) {
    const Expr scale = scale_of(c, first + 1);
    Expr zero = c.input(first + 2);
    if (zero && c.rank(zero) == 1 && c.rank(scale) == 0) zero = call("Squeeze", {zero});
    return call("DequantizeLinear", {c.required(first), scale, zero}, {{"axis", axis}});
  };
  const Expr scale = scale_of(c, 1) * scale_of(c, 4);
  Expr bias;
  if (c.has(6)) bias = cast(c.input(6), scale.dtype()) * scale;
  const float alpha = c.node().attributes.get_float("alpha", 1.0F);
  const Expr y = call("Gemm", {numbers(0, 0), numbers(3, is_turned ? 0 : 1), bias},
                      {{"alpha", alpha},
                       {"beta", alpha},
                       {"transA", c.integer("transA")},
                       {"transB", c.integer("transB")}});
  if (!c.has(7)) return {y};
  return {call("QuantizeLinear", {y, scale_of(c, 7), c.input(8)})};
}

/// The standard's op of the same name, which came later.
Outputs expand_to_standard(const MicrosoftCall& c) {
  std::vector<Expr> inputs;
  for (int i = 0; i < c.node().input_count(); ++i) inputs.push_back(c.input(i));
  return {call(c.node().op_type(), inputs, c.node().attributes)};
}

struct Row {
  std::string_view name;
  Outputs (*expand)(const MicrosoftCall& call);
  std::string_view domain = kDomain;
};

constexpr Row kRows[] = {
    {"Attention", expand_attention},
    {"BiasGelu", expand_bias_gelu},
    {"DequantizeLinear", expand_to_standard},
    {"EmbedLayerNormalization", expand_embed_layer_norm},
    {"FastGelu", expand_fast_gelu},
    {"FusedConv", expand_fused_conv},
    {"FusedGemm", expand_fused_gemm},
    {"FusedMatMul", expand_fused_mat_mul},
    {"Gelu", expand_gelu},
    {"GroupQueryAttention", expand_group_query_attention},
    {"MatMulNBits", expand_mat_mul_n_bits},
    {"MultiHeadAttention", expand_multi_head_attention},
    {"QGemm", expand_q_gemm},
    {"QuantizeLinear", expand_to_standard},
    {"QuickGelu", expand_quick_gelu},
    {"RotaryEmbedding", expand_rotary_embedding},
    {kRmsNorm, expand_rms_norm, ""},
    {"SkipLayerNormalization", expand_skip_layer_norm},
    {"SkipSimplifiedLayerNormalization", expand_skip_rms_norm},
    {"AveragePool", expand_to_standard, kBlockedDomain},
    {"Conv", expand_blocked_conv, kBlockedDomain},
    {"GlobalAveragePool", expand_to_standard, kBlockedDomain},
    {"GlobalMaxPool", expand_to_standard, kBlockedDomain},
    {"MaxPool", expand_to_standard, kBlockedDomain},
    {"ReorderInput", expand_reorder_input, kBlockedDomain},
    {"ReorderOutput", expand_reorder_output, kBlockedDomain},
    {"Upsample", expand_blocked_upsample, kBlockedDomain},
};

const Row* row_of(const Node& node) {
  const auto* const row = std::ranges::find_if(kRows, [&](const Row& candidate) {
    return candidate.name == node.op_type() && candidate.domain == node.domain();
  });
  return row == std::end(kRows) ? nullptr : row;
}

/// `block`: how many channels lie together in blocked images.
void expand_node(Node& node, const Row& row, std::int64_t block) {
  Builder builder(node.graph(), &node, (node.name().empty() ? node.op_type() : node.name()) + "/");
  std::vector<Value*> results;
  for (const Expr& output : row.expand(MicrosoftCall(node, builder, block))) {
    results.push_back(output.value());
  }
  results.resize(static_cast<std::size_t>(std::max(node.output_count(), 1)), nullptr);
  for (int i = 0; i < node.output_count(); ++i) {
    if (node.output(i) == nullptr || node.output(i)->is_unused()) continue;
    if (at(results, i) != nullptr) continue;
    fail(ErrorKind::unsupported, node.label(), ": no form for its output ", i, " ('",
         node.output(i)->name(), "')");
  }
  replace_node(node, results);
}

bool holds_any(const Graph& graph) {
  return std::ranges::any_of(graph.nodes(), [](const auto& node) {
    bool found = is_microsoft(*node);
    for_each_body(*node, [&](const Graph& body) { found = found || holds_any(body); });
    return found;
  });
}

}  // namespace

bool is_microsoft(const Node& node) {
  return row_of(node) != nullptr;
}

namespace {

void expand_all(Graph& graph, std::int64_t block) {
  Node* next = graph.nodes().empty() ? nullptr : graph.nodes().front().get();
  while (next != nullptr) {
    Node* const node = next;
    next = graph.next(node);
    for_each_body(*node, [&](Graph& body) { expand_all(body, block); });
    if (const Row* const row = row_of(*node)) {
      expand_node(*node, *row, block);
    } else {
      infer(*node);
    }
  }
}

}  // namespace

bool expand_microsoft(Graph& graph) {
  if (!holds_any(graph)) return false;
  expand_all(graph, channels_of_block(graph));
  return true;
}

Expr unpacked_weight(const Node& node, Builder& builder) {
  const MicrosoftCall c(node, builder);
  c.refuse_input(4, "g_idx");
  constexpr std::int64_t kMost = std::int64_t{1} << 31;
  const std::int64_t k = c.integer("K");
  const std::int64_t n = c.integer("N");
  const std::int64_t bits = c.integer("bits", 4);
  const std::int64_t block = c.integer("block_size", 32);
  const auto is_size = [](std::int64_t size) { return size > 0 && size <= kMost; };
  if ((bits != 2 && bits != 4 && bits != 8) || !is_size(block) || !is_size(k) || !is_size(n)) {
    c.unsupported("no form for ", bits, " bits in blocks of ", block, " for a weight of ", k, " x ",
                  n);
  }
  const std::int64_t blocks = (k + block - 1) / block;
  const Expr scales = c.required(2);
  const Expr numbers = cast(unpacked(c, c.required(1), bits, {n, blocks, block}), scales.dtype());
  const Expr weight =
      (numbers - zeros_of_blocks(c, scales, n, blocks, bits)) * c.reshaped(scales, {n, blocks, 1});
  const Expr rows = c.reshaped(weight, {n, blocks * block});
  const Expr used = call("Slice", {rows, c.ints({0}), c.ints({k}), c.ints({1})});
  return transpose(used, {1, 0});
}

}  // namespace graft::passes
