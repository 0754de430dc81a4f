// Nets of attention: for images (ViT), for whole texts (BERT), for the next token (GPT).
#include "core/layers/nets.h"
#include "core/layers/nets_internal.h"
#include "core/layers/self_attention.h"

namespace graft {
namespace {

/// The embeddings and matrices of BERT and GPT-2 start so.
constexpr Init kNarrow{.kind = Init::normal, .deviation = 0.02};
constexpr std::int64_t kExpansion = 4;  // of the hidden rows of a feed-forward part

Value* add_feed_forward(LayerContext& context, const std::string& first, const std::string& second,
                        const Layer& activation, std::int64_t width, Value* x) {
  return add_layers(context,
                    {Linear{.name = first, .out = kExpansion * width}, activation,
                     Linear{.name = second, .out = width}},
                    x);
}

Value* add_parameter(LayerContext& context, const std::string& name, const Shape& shape,
                     const Init& init) {
  return context.weight(name, DType::f32, shape, {}, {.init = init});
}

/// What stands at the first place of x [N,length,features].
Value* first_of(LayerContext& context, Value* x) {
  Value* const zero = context.initializer("first.index", Tensor::scalar<std::int64_t>(0));
  return context.node("Gather", {x, zero}, "first", {{"axis", 1}});
}

/// A learned row before the others, for each sample.
Value* add_class_token(LayerContext& context, std::int64_t width, Value* x) {
  Value* const token =
      add_parameter(context, "class_token", {1, 1, width}, {.kind = Init::constant});
  Value* const shape = context.node("Shape", {x}, "class_token.shape");
  Value* const batch = context.node("Gather", {shape, context.integers("class_token.axis", {0})},
                                    "class_token.batch");
  Value* const target =
      context.node("Concat", {batch, context.integers("class_token.dims", {1, width})},
                   "class_token.target", {{"axis", 0}});
  Value* const tokens = context.node("Expand", {token, target}, "class_token.rows");
  return context.node("Concat", {tokens, x}, "class_token.joined", {{"axis", 1}});
}

Value* add_vit_layer(LayerContext& context, const std::string& name, std::int64_t heads,
                     std::int64_t width, Value* x) {
  constexpr float kEpsilon = 1e-6F;
  Value* y = add_layers(context,
                        {LayerNorm{.name = name + ".ln_1", .epsilon = kEpsilon},
                         MultiHeadAttention{.name = name + ".self_attention", .heads = heads}},
                        x);
  x = context.node("Add", {y, x}, name + ".attended");
  y = add_layer(context, LayerNorm{.name = name + ".ln_2", .epsilon = kEpsilon}, x);
  y = add_feed_forward(context, name + ".mlp.0", name + ".mlp.3", Gelu{.name = name + ".mlp.1"},
                       width, y);
  return context.node("Add", {x, y}, name);
}

Value* add_bert_layer(LayerContext& context, const std::string& name, std::int64_t heads,
                      std::int64_t width, float epsilon, Value* x) {
  Value* y = add_layer(context, MultiHeadAttention{.name = name + ".self_attn", .heads = heads}, x);
  x = context.node("Add", {x, y}, name + ".attended");
  x = add_layer(context, LayerNorm{.name = name + ".norm1", .epsilon = epsilon}, x);
  y = add_feed_forward(context, name + ".linear1", name + ".linear2",
                       Gelu{.name = name + ".activation"}, width, x);
  x = context.node("Add", {x, y}, name + ".sum");
  return add_layer(context, LayerNorm{.name = name + ".norm2", .epsilon = epsilon}, x);
}

/// x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), as GPT-2 has it.
Value* add_tanh_gelu(LayerContext& context, const std::string& name, Value* x) {
  const auto number = [&](const char* what, double value) {
    return context.scalar(name + what, *x, value);
  };
  Value* const cube = context.node("Pow", {x, number(".three", 3)}, name + ".cube");
  Value* const part = context.node("Mul", {cube, number(".share", 0.044715)}, name + ".part");
  Value* const sum = context.node("Add", {x, part}, name + ".sum");
  constexpr double kRootOfTwoByPi = 0.79788456080286541;
  Value* const inner = context.node("Mul", {sum, number(".root", kRootOfTwoByPi)}, name + ".inner");
  Value* const tanh = context.node("Tanh", {inner}, name + ".tanh");
  Value* const gate = context.node("Add", {tanh, number(".one", 1)}, name + ".gate");
  Value* const half = context.node("Mul", {x, number(".half", 0.5)}, name + ".half_of_x");
  return context.node("Mul", {half, gate}, name);
}

/// Where row i sees column j: up to itself.
Value* add_causal_mask(LayerContext& context, std::int64_t length) {
  const Tensor mask = Tensor::zeros(DType::boolean, {length, length});
  for (std::int64_t i = 0; i < length; ++i) {
    for (std::int64_t j = 0; j <= i; ++j) {
      mask.values<bool>()[static_cast<std::size_t>(i * length + j)] = true;
    }
  }
  return context.initializer("mask", mask);
}

Value* add_gpt_layer(LayerContext& context, const std::string& name, std::int64_t heads,
                     std::int64_t width, Value* mask, Value* x) {
  Value* y = add_layer(context, LayerNorm{.name = name + ".ln_1"}, x);
  y = layers::attend(context, {.name = name + ".attn", .heads = heads, .init = kNarrow}, y, mask);
  x = context.node("Add", {x, y}, name + ".attended");
  y = add_layer(context, LayerNorm{.name = name + ".ln_2"}, x);
  y = add_layer(context,
                Linear{.name = name + ".mlp.c_fc", .out = kExpansion * width, .init = kNarrow}, y);
  y = add_tanh_gelu(context, name + ".mlp.act", y);
  y = add_layer(context, Linear{.name = name + ".mlp.c_proj", .out = width, .init = kNarrow}, y);
  return context.node("Add", {x, y}, name);
}

}  // namespace

Value* build_vit(LayerContext& context, Value* image, std::int64_t classes) {
  constexpr std::int64_t kWidth = 192;
  constexpr int kDepth = 12;
  const Shape sample = sample_of(*image);
  require_image("vit", sample);
  const std::int64_t patch = is_small_image(sample) ? 4 : 16;
  require_multiple("vit", sample, patch);
  Value* x =
      add_layers(context,
                 {Conv{.name = "conv_proj", .out = kWidth, .kernel = {patch}, .stride = {patch}},
                  Reshape{.name = "patches", .shape = {kWidth, -1}}},
                 image);
  x = context.node("Transpose", {x}, "rows", {{"perm", std::vector<std::int64_t>{0, 2, 1}}});
  x = add_class_token(context, kWidth, x);
  const std::int64_t places = 1 + sample[1] / patch * (sample[2] / patch);
  Value* const place =
      add_parameter(context, "encoder.pos_embedding", {1, places, kWidth}, kNarrow);
  x = context.node("Add", {x, place}, "placed");
  for (int i = 0; i < kDepth; ++i) {
    x = add_vit_layer(context, text("encoder.layers.encoder_layer_", i), 3, kWidth, x);
  }
  x = add_layer(context, LayerNorm{.name = "encoder.ln", .epsilon = 1e-6F}, x);
  return add_layer(context, Linear{.name = "heads.head", .out = classes}, first_of(context, x));
}

Value* build_bert(LayerContext& context, Value* tokens, std::int64_t classes) {
  constexpr std::int64_t kWidth = 256;
  constexpr std::int64_t kTokens = 30'522;
  constexpr int kDepth = 4;
  constexpr float kEpsilon = 1e-12F;
  const std::int64_t length = sample_of(*tokens)[0];
  Value* x = add_layer(
      context, Embedding{.name = "tok", .count = kTokens, .size = kWidth, .init = kNarrow}, tokens);
  Value* const place = add_parameter(context, "pos.weight", {length, kWidth}, kNarrow);
  x = context.node("Add", {x, place}, "placed");
  x = add_layer(context, LayerNorm{.name = "ln", .epsilon = kEpsilon}, x);
  for (int i = 0; i < kDepth; ++i) {
    x = add_bert_layer(context, text("encoder.layers.", i), 4, kWidth, kEpsilon, x);
  }
  return add_layers(context,
                    {Linear{.name = "pool", .out = kWidth, .init = kNarrow}, Tanh{.name = "pooled"},
                     Linear{.name = "classifier", .out = classes, .init = kNarrow}},
                    first_of(context, x));
}

Value* build_gpt(LayerContext& context, Value* tokens, std::int64_t classes) {
  constexpr std::int64_t kWidth = 192;
  constexpr int kDepth = 6;
  const std::int64_t length = sample_of(*tokens)[0];
  Value* const table = add_parameter(context, "wte.weight", {classes, kWidth}, kNarrow);
  Value* x = context.node("Gather", {table, tokens}, "wte");
  Value* const place = add_parameter(context, "wpe.weight", {length, kWidth}, kNarrow);
  x = context.node("Add", {x, place}, "placed");
  Value* const mask = add_causal_mask(context, length);
  for (int i = 0; i < kDepth; ++i) {
    x = add_gpt_layer(context, text("h.", i), 6, kWidth, mask, x);
  }
  x = add_layer(context, LayerNorm{.name = "ln_f"}, x);
  Value* const head =
      context.node("Transpose", {table}, "wte.turned", {{"perm", std::vector<std::int64_t>{1, 0}}});
  return context.node("MatMul", {x, head}, "next");
}

}  // namespace graft
