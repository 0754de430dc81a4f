#include "core/passes/microsoft.h"

#include <algorithm>

#include "core/ops/infer.h"
#include "core/passes/microsoft_attention_internal.h"
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

/// `numbers`: the activation's settings, in the order of its attributes.
Expr activated(const MicrosoftCall& c, const Expr& x, const std::string& name,
               const std::vector<float>& numbers) {
  const auto number = [&](std::size_t i, float fallback) {
    return i < numbers.size() ? numbers[i] : fallback;
  };
  if (name.empty()) return x;
  if (name == "Relu" || name == "Sigmoid" || name == "Tanh" || name == "Softplus") {
    return call(name, {x});
  }
  if (name == "LeakyRelu") return call(name, {x}, {{"alpha", number(0, 0.01F)}});
  if (name == "HardSigmoid") {
    return call(name, {x}, {{"alpha", number(0, 0.2F)}, {"beta", number(1, 0.5F)}});
  }
  if (name == "Clip" && numbers.size() == 2) {
    return call(name, {x, constant_like(x, static_cast<double>(numbers[0])),
                       constant_like(x, static_cast<double>(numbers[1]))});
  }
  c.unsupported("no form for its activation '", name, "' with ", numbers.size(), " settings");
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
  Attributes attributes = c.node().attributes;
  const std::string activation = attributes.get_string("activation", "");
  const std::vector<float> numbers = attributes.get_floats("activation_params");
  attributes.erase("activation");
  attributes.erase("activation_params");
  Expr y = call("Conv", {c.required(0), c.required(1), c.input(2)}, attributes);
  if (c.has(3)) y = y + c.input(3);
  return {activated(c, y, activation, numbers)};
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

/// The standard's op of the same name, which came later.
Outputs expand_to_standard(const MicrosoftCall& c) {
  std::vector<Expr> inputs;
  for (int i = 0; i < c.node().input_count(); ++i) inputs.push_back(c.input(i));
  return {call(c.node().op_type(), inputs, c.node().attributes)};
}

struct Row {
  std::string_view name;
  Outputs (*expand)(const MicrosoftCall& call);
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
    {"MatMulNBits", expand_mat_mul_n_bits},
    {"MultiHeadAttention", expand_multi_head_attention},
    {"QuantizeLinear", expand_to_standard},
    {"QuickGelu", expand_quick_gelu},
    {"RotaryEmbedding", expand_rotary_embedding},
    {kRmsNorm, expand_rms_norm},
    {"SkipLayerNormalization", expand_skip_layer_norm},
    {"SkipSimplifiedLayerNormalization", expand_skip_rms_norm},
};

const Row* row_of(const Node& node) {
  if (node.domain() != kDomain && !node.is(kRmsNorm)) return nullptr;
  const auto* const row = std::ranges::find(kRows, node.op_type(), &Row::name);
  return row == std::end(kRows) ? nullptr : row;
}

void expand(Node& node, const Row& row) {
  Builder builder(node.graph(), &node, (node.name().empty() ? node.op_type() : node.name()) + "/");
  std::vector<Value*> results;
  for (const Expr& output : row.expand(MicrosoftCall(node, builder))) {
    results.push_back(output.value());
  }
  results.resize(static_cast<std::size_t>(std::max(node.output_count(), 1)), nullptr);
  for (int i = 0; i < node.output_count(); ++i) {
    if (node.output(i) == nullptr || node.output(i)->is_unused()) continue;
    if (results[static_cast<std::size_t>(i)] != nullptr) continue;
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

bool expand_microsoft(Graph& graph) {
  if (!holds_any(graph)) return false;
  Node* next = graph.nodes().front().get();
  while (next != nullptr) {
    Node* const node = next;
    next = graph.next(node);
    for_each_body(*node, [](Graph& body) { expand_microsoft(body); });
    if (const Row* const row = row_of(*node)) {
      expand(*node, *row);
    } else {
      infer(*node);
    }
  }
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
