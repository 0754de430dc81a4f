#include "core/ops/builder.h"
#include "core/ops/registry.h"
#include "core/ops/shape_rules.h"

namespace graft {
namespace {

void infer_reverse_sequence(InferContext& context) {
  const std::int64_t batch = context.attributes().get_int("batch_axis", 1);
  const std::int64_t time = context.attributes().get_int("time_axis", 0);
  if (!(batch == 0 && time == 1) && !(batch == 1 && time == 0)) {
    context.fail(ErrorKind::model, "batch_axis is ", batch, " and time_axis ", time,
                 ", wanted 0 and 1 or 1 and 0");
  }
  context.require_rank(0, 2, 64);
  context.require_rank(1, 1, 1);
  if (context.dtype(1) != DType::undefined && context.dtype(1) != DType::i64) {
    context.fail(ErrorKind::type, "sequence_lens is ", context.dtype(1), ", wanted i64");
  }
  context.copy_type(0);
  const SymShape* const x = context.shape(0);
  const SymShape* const lengths = context.shape(1);
  if (x == nullptr || lengths == nullptr) return;
  const Dim& samples = (*x)[static_cast<int>(batch)];
  const Dim& found = (*lengths)[0];
  if (samples.is_known() && found.is_known() && samples.value() != found.value()) {
    context.fail(ErrorKind::shape, "sequence_lens has ", found, " elements, wanted ", samples);
  }
}

/// What was moved moves back.
std::vector<Expr> reverse_sequence_rule(const Gradient& g) {
  return {call("ReverseSequence", {g.dy(), g.x(1)}, g.attributes())};
}

std::vector<Sample> reverse_sequence_samples() {
  const SampleInput lengths{.shape = {3}, .values = {0, 4, 2}, .dtype = DType::i64};
  const Attributes batch_first{{"batch_axis", 0}, {"time_axis", 1}};
  return {
      {"time_first", {{{4, 3, 2}}, lengths}},
      {"batch_first", {{{3, 4, 2}}, lengths}, batch_first},
      {"matrix", {{{3, 4}}, lengths}, batch_first},
      {"integers",
       {{.shape = {3, 4}, .low = -9, .high = 9, .dtype = DType::i64}, lengths},
       batch_first},
      {"empty", {{{4, 3, 0}}, lengths}},
      {"one_sample", {{{4, 1, 2}}, {.shape = {1}, .values = {3}, .dtype = DType::i64}}},
  };
}

}  // namespace

/// Reverses the first sequence_lens[b] steps of each sample b.
void register_reverse_sequence(OpRegistry& registry) {
  registry.add({.name = "ReverseSequence",
                .since = {{10}, {28, "bfloat16"}},
                .inputs = {{"input"}, {"sequence_lens"}},
                .outputs = {{"Y"}},
                .attributes = {{"batch_axis", AttributeType::integer},
                               {"time_axis", AttributeType::integer}},
                .infer = infer_reverse_sequence,
                .only_moves = true,
                .backward = reverse_sequence_rule,
                .samples = reverse_sequence_samples});
}

}  // namespace graft
