#include "core/passes/microsoft_blocks_internal.h"

#include "core/base/isa.h"

namespace graft::passes {
namespace {

constexpr std::int64_t kNarrow = 8;
constexpr std::int64_t kWide = 16;

std::int64_t filled_up(std::int64_t channels, std::int64_t block) {
  return checked_multiply(channels / block + (channels % block != 0 ? 1 : 0), block);
}

/// Whether the value's channels lie in blocks.
bool is_blocked(const Value* value) {
  const Node* node = value == nullptr ? nullptr : value->producer();
  while (node != nullptr && node->domain() != kBlockedDomain) {  // what works element by element
    const Value* const input = node->input_count() == 0 ? nullptr : node->input(0);
    node = input == nullptr ? nullptr : input->producer();
  }
  return node != nullptr && !node->is("ReorderOutput", kBlockedDomain);
}

/// The block that a convolution's shapes show, 0 where both would do.
std::int64_t block_of_conv(const Node& conv) {
  const Value* const weight = conv.input(1);
  if (weight == nullptr || !weight->is_initializer() || weight->initializer().rank() != 4) return 0;
  const Shape& shape = weight->initializer().shape();
  const bool is_plain = conv.attributes.get_int("group", 1) == 1 && !is_blocked(conv.input(0));
  if (shape[0] % kWide != 0) return kNarrow;
  if (is_plain) return shape[1] >= kNarrow ? kWide : 0;  // plain images are narrower than a block
  return shape[1] > 1 && shape[1] % kWide != 0 ? kNarrow : 0;
}

/// By the channels that are left over behind a convolution.
std::int64_t block_of_output(const Node& reorder) {
  const Node* const conv = reorder.input(0) == nullptr ? nullptr : reorder.input(0)->producer();
  if (conv == nullptr || !conv->is("Conv", kBlockedDomain) || conv->input(1) == nullptr) return 0;
  const Value& weight = *conv->input(1);
  if (!weight.is_initializer() || weight.initializer().rank() != 4) return 0;
  const std::int64_t channels = reorder.attributes.get_int("channels", 0);
  return weight.initializer().shape()[0] != filled_up(channels, kNarrow) ? kWide : 0;
}

/// [O,I,*kernel] of a weight in blocks: [O/b,I/b,*kernel,b of I,b of O], or where x is plain or
/// each channel stands alone [O/b,I,*kernel,b of O].
Expr weight_in_order(const MicrosoftCall& c) {
  const Expr weight = c.required(1);
  if (c.rank(weight) != 4)
    c.unsupported("its weight is ", weight.value()->type(), ", wanted rank 4");
  const std::int64_t block = c.block();
  const std::int64_t out = c.dim(weight, 0);
  const std::int64_t in = c.dim(weight, 1);
  const std::int64_t height = c.dim(weight, 2);
  const std::int64_t width = c.dim(weight, 3);
  const std::int64_t groups = c.integer("group", 1);
  const bool is_plain = groups == 1 ? in < block : in == 1 && out == groups;
  const std::int64_t inner = is_plain ? 1 : block;
  if (out % block != 0 || in % inner != 0) {
    c.unsupported("its weight is ", weight.value()->type(), ", wanted blocks of ", block,
                  " channels: it was written for another kind of machine");
  }
  const Expr parts = c.reshaped(weight, {out / block, in / inner, height, width, inner, block});
  return c.reshaped(transpose(parts, {0, 5, 1, 4, 2, 3}), {out, in, height, width});
}

}  // namespace

std::int64_t channels_of_block(const Graph& graph) {
  for (const auto& node : graph.nodes()) {
    const std::int64_t shown = node->is("Conv", kBlockedDomain)            ? block_of_conv(*node)
                               : node->is("ReorderOutput", kBlockedDomain) ? block_of_output(*node)
                                                                           : 0;
    if (shown != 0) return shown;
  }
  return best_isa(read_cpuid()) == Isa::avx512 ? kWide : kNarrow;
}

Outputs expand_blocked_conv(const MicrosoftCall& c) {
  return {fused_conv(c, weight_in_order(c))};
}

Outputs expand_blocked_upsample(const MicrosoftCall& c) {
  std::vector<float> scales;
  for (const std::int64_t scale : c.node().attributes.get_ints("scales")) {
    scales.push_back(static_cast<float>(scale));
  }
  const auto count = static_cast<std::int64_t>(scales.size());
  const Expr factors = c.builder().expr(c.builder().constant(Tensor::from(Shape{count}, scales)));
  const Attributes& given = c.node().attributes;
  return {call("Resize", {c.required(0), {}, factors},
               {{"mode", given.get_string("mode", "nearest")},
                {"coordinate_transformation_mode",
                 given.get_string("coordinate_transformation_mode", "asymmetric")},
                {"nearest_mode", "floor"}})};
}

Outputs expand_reorder_input(const MicrosoftCall& c) {
  Expr x = c.required(0);
  if (c.integer("channels_last") != 0) x = transpose(x, {0, 3, 1, 2});
  const std::int64_t channels = c.dim(x, 1);
  const std::int64_t missing = filled_up(channels, c.block()) - channels;
  if (missing == 0) return {call("Identity", {x})};
  return {call("Pad", {x, c.ints({0, 0, 0, 0, 0, missing, 0, 0})})};
}

Outputs expand_reorder_output(const MicrosoftCall& c) {
  const std::int64_t channels = c.integer("channels");
  if (channels < 1)
    fail(ErrorKind::model, c.node().label(), ": channels is ", channels, ", wanted at least 1");
  Expr x = c.required(0);
  if (c.dim(x, 1) != channels) {
    x = call("Slice", {x, c.ints({0}), c.ints({channels}), c.ints({1})});
  }
  return {c.integer("channels_last") != 0 ? transpose(x, {0, 2, 3, 1}) : call("Identity", {x})};
}

}  // namespace graft::passes
