#include "core/ops/builder.h"
#include "core/ops/kernels/window.h"
#include "core/ops/registry.h"
#include "core/ops/shape_rules.h"
#include "core/ops/table_limit.h"

namespace graft {
namespace {

struct Frames {
  std::int64_t length;
  std::int64_t step;
  std::int64_t count;
};

/// frame_length, else the window's, else the whole signal.
std::optional<std::int64_t> frame_length(const InferContext& context) {
  std::optional<std::int64_t> length;
  if (context.has_input(3)) {
    length = known_size(context, 3, 1, kMostPerAxis);
    if (!length) return std::nullopt;
  }
  if (!context.has_input(2)) {
    if (length || context.shape(0) == nullptr) return length;
    const Dim& all = (*context.shape(0))[1];
    return all.is_known() ? std::optional(all.value()) : std::nullopt;
  }
  const auto window = list_length(context, 2);
  if (length && window && *window != *length) {
    context.fail(ErrorKind::shape, "the window has ", *window, " elements, frame_length is ",
                 *length);
  }
  return window ? window : length;
}

std::optional<Frames> frames_of(const InferContext& context) {
  const auto step = known_size(context, 1, 1, kMostPerAxis);
  const auto length = frame_length(context);
  const SymShape* const signal = context.shape(0);
  if (!step || !length || signal == nullptr || !(*signal)[1].is_known()) return std::nullopt;
  const std::int64_t all = (*signal)[1].value();
  if (*length < 1 || *length > all) {
    context.fail(ErrorKind::shape, "frames of ", *length, " do not fit a signal of ", all);
  }
  return Frames{*length, *step, 1 + (all - *length) / *step};
}

/// signal: [N, length, 1 or 2].
void infer_stft(InferContext& context) {
  context.require_rank(0, 3, 3);
  context.require_same_dtype({0, 2});
  const SymShape* const signal = context.shape(0);
  SymShape y{Dim(), Dim(), Dim(), 2};
  if (signal != nullptr) {
    y[0] = (*signal)[0];
    const Dim& parts = (*signal)[2];
    if (parts.is_known() && parts.value() != 1 && parts.value() != 2) {
      context.fail(ErrorKind::shape, "signal is ", *signal, ", wanted 1 or 2 in the last axis");
    }
  }
  if (const auto frames = frames_of(context)) {
    const bool onesided = context.attributes().get_int("onesided", 1) != 0;
    y[1] = frames->count;
    y[2] = onesided ? frames->length / 2 + 1 : frames->length;
  }
  context.set_output(0, context.dtype(0), std::move(y));
}

/// Cuts out the frames, multiplies with the window, transforms each.
std::vector<Expr> expand_stft(const Node& node, Builder& builder) {
  const InferContext context(const_cast<Node&>(node));  // reads only
  const auto frames = frames_of(context);
  if (!frames) fail(ErrorKind::unsupported, node.label(), ": its frames are not known");
  const Expr signal = builder.expr(node.input(0));
  const Shape shape = signal.shape();
  require_small_table(node, frames->count, frames->length);
  std::vector<std::int64_t> places;
  for (std::int64_t frame = 0; frame < frames->count; ++frame) {
    for (std::int64_t i = 0; i < frames->length; ++i) places.push_back(frame * frames->step + i);
  }
  Expr parts = call("Gather", {signal, constant_ints(builder, places)}, {{"axis", 1}});
  parts = reshape(parts, {shape[0], frames->count, frames->length, shape[2]});
  if (node.input(2) != nullptr) {
    parts = parts * reshape(builder.expr(node.input(2)), {frames->length, 1});
  }
  return {call("DFT", {parts}, {{"onesided", node.attributes.get_int("onesided", 1)}})};
}

std::vector<Sample> stft_samples() {
  return {
      {"window", {{{2, 20, 1}}, constant_number(4), {{8}}}},
      {"frame_length", {{{2, 19, 1}}, constant_number(3), absent(), constant_number(6)}},
      {"both", {{{1, 16, 1}}, constant_number(5), {{7}}, constant_number(7)}},
      {"complex", {{{1, 16, 2}}, constant_number(5), {{6}}}, {{"onesided", 0}}},
      {"whole", {{{2, 9, 1}}, constant_number(1)}},
      {"no_signals", {{{0, 9, 1}}, constant_number(4), {{8}}}},
  };
}

}  // namespace

/// STFT, by way of DFT.
void register_stft(OpRegistry& registry) {
  registry.add({.name = "STFT",
                .since = {{17}},
                .inputs = {{"signal"},
                           {"frame_step"},
                           {"window", Arity::optional},
                           {"frame_length", Arity::optional}},
                .outputs = {{"output"}},
                .attributes = {{"onesided", AttributeType::integer}},
                .infer = infer_stft,
                .backward = Decomposition{expand_stft},
                .samples = stft_samples});
}

}  // namespace graft
