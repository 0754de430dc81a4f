#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "core/ops/shape_rules.h"
#include "core/passes/legacy_internal.h"

namespace graft::passes {
namespace {

int known_rank(const Node& node, int input) {
  const Value* const value = node.input(input);
  if (value == nullptr || !value->shape()) {
    fail(ErrorKind::unsupported, node.label(), ": the rank of input ", input,
         " is not known, which its broadcasting by an attribute needs");
  }
  return value->shape()->rank();
}

/// Input 1 gets `count` further axes of one element at its end.
void append_axes(Node& node, Builder& builder, int count) {
  if (count == 0) return;
  const int rank = known_rank(node, 1);
  std::vector<std::int64_t> axes;
  for (int i = 0; i < count; ++i) axes.push_back(rank + i);
  node.set_input(1, unsqueeze(builder.expr(node.input(1)), axes).value());
}

/// With `axis` the dims of B stand for those of A from there on; without, for the last ones.
void upgrade_broadcast(Node& node, std::int64_t, Builder& builder) {
  if (node.attributes.get_int("broadcast", 0) != 0 && node.attributes.has("axis")) {
    const int rank = known_rank(node, 0);
    const int axis = normalize_axis(node.attributes.get_int("axis", 0), rank, node.label());
    const int rest = rank - axis - known_rank(node, 1);
    if (rest < 0) {
      fail(ErrorKind::shape, node.label(), ": B is ", node.input(1)->type(),
           ", which does not fit A from axis ", axis, " on: ", node.input(0)->type());
    }
    append_axes(node, builder, rest);
  }
  node.attributes.erase("axis");
  node.attributes.erase("broadcast");
}

/// One slope, or one a channel: axis 1 of x.
void upgrade_prelu(Node& node, std::int64_t, Builder& builder) {
  if (known_rank(node, 1) != 1) return;
  const Dim& slopes = (*node.input(1)->shape())[0];
  if (slopes.is_known() && slopes.value() == 1) return;
  append_axes(node, builder, std::max(0, known_rank(node, 0) - 2));
}

void upgrade_cast(Node& node, std::int64_t from, Builder&) {
  if (from >= 6) return;
  static constexpr std::array<std::pair<std::string_view, DType>, 13> kNames{{
      {"FLOAT", DType::f32},
      {"DOUBLE", DType::f64},
      {"FLOAT16", DType::f16},
      {"INT8", DType::i8},
      {"INT16", DType::i16},
      {"INT32", DType::i32},
      {"INT64", DType::i64},
      {"UINT8", DType::u8},
      {"UINT16", DType::u16},
      {"UINT32", DType::u32},
      {"UINT64", DType::u64},
      {"BOOL", DType::boolean},
      {"STRING", DType::string},
  }};
  const std::string name = node.attributes.get_string("to", "");
  for (const auto& [known, dtype] : kNames) {
    if (name == known) return node.attributes.set({"to", static_cast<int>(dtype)});
  }
  fail(ErrorKind::model, node.label(), ": to is '", name, "', which is not an element type");
}

void upgrade_reshape(Node& node, std::int64_t from, Builder& builder) {
  if (from < 5) ints_attribute_to_input(node, builder, "shape", 1);
}

void upgrade_pad(Node& node, std::int64_t from, Builder&) {
  if (from >= 2 || !node.attributes.has("paddings")) return;
  node.attributes.set({"pads", node.attributes.get_ints("paddings")});
  node.attributes.erase("paddings");
}

/// The constants had fewer digits.
void upgrade_selu(Node& node, std::int64_t from, Builder&) {
  if (from >= 6) return;
  if (!node.attributes.has("alpha")) node.attributes.set({"alpha", 1.6732F});
  if (!node.attributes.has("gamma")) node.attributes.set({"gamma", 1.0507F});
}

void upgrade_lp_pool(Node& node, std::int64_t from, Builder&) {
  if (from >= 2 || !node.attributes.has("p")) return;
  const float p = node.attributes.get_float("p", 2.0F);
  const auto whole = std::isnan(p) ? 0 : static_cast<std::int64_t>(std::clamp(p, 0.0F, 1e6F));
  if (static_cast<float>(whole) != p) {
    fail(ErrorKind::unsupported, node.label(), ": p is ", p, ", wanted a whole number up to 1e6");
  }
  node.attributes.set({"p", whole});
}

void upgrade_upsample(Node& node, std::int64_t, Builder&) {
  if (!node.attributes.has("height_scale")) return;
  node.attributes.set(
      {"scales", std::vector<float>{1.0F, 1.0F, node.attributes.get_float("height_scale", 1.0F),
                                    node.attributes.get_float("width_scale", 1.0F)}});
  if (node.attributes.get_string("mode", "nearest") == "bilinear") {
    node.attributes.set({"mode", "linear"});
  }
}

using Upgrade = void (*)(Node& node, std::int64_t from, Builder& builder);

constexpr std::array<std::pair<std::string_view, Upgrade>, 19> kUpgrades{{
    {"Add", upgrade_broadcast},     {"Sub", upgrade_broadcast},   {"Mul", upgrade_broadcast},
    {"Div", upgrade_broadcast},     {"Pow", upgrade_broadcast},   {"And", upgrade_broadcast},
    {"Or", upgrade_broadcast},      {"Xor", upgrade_broadcast},   {"Equal", upgrade_broadcast},
    {"Greater", upgrade_broadcast}, {"Less", upgrade_broadcast},  {"PRelu", upgrade_prelu},
    {"Cast", upgrade_cast},         {"Reshape", upgrade_reshape}, {"Pad", upgrade_pad},
    {"Selu", upgrade_selu},         {"LpPool", upgrade_lp_pool},  {"GlobalLpPool", upgrade_lp_pool},
    {"Upsample", upgrade_upsample},
}};

}  // namespace

void upgrade_legacy(Node& node, std::int64_t from, Builder& builder) {
  if (!node.domain().empty()) return;
  for (const auto& [op, upgrade] : kUpgrades) {
    if (op == node.op_type()) upgrade(node, from, builder);
  }
  // Hints to share memory, whether it trains (sessions and training steps know), which outputs to
  // give, and Gemm's permission to broadcast C.
  for (const char* name : {"consumed_inputs", "is_test", "output_sequence", "broadcast"}) {
    node.attributes.erase(name);
  }
}

}  // namespace graft::passes
