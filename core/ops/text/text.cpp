#include "core/base/regex.h"
#include "core/ops/registry.h"
#include "core/ops/shape_rules.h"

namespace graft {
namespace {

constexpr NotDifferentiable kTexts{"it works on strings"};

void require_strings(const InferContext& context, int index) {
  const DType dtype = context.dtype(index);
  if (dtype == DType::undefined || dtype == DType::string) return;
  context.fail(ErrorKind::type, "input '", context.input(index).name(), "' is ",
               context.input(index).type(), ", wanted strings");
}

void infer_string_concat(InferContext& context) {
  require_strings(context, 0);
  require_strings(context, 1);
  context.set_output(0, DType::string, broadcast_inputs(context));
}

/// substrings [..., longest], lengths [...]
void infer_string_split(InferContext& context) {
  require_strings(context, 0);
  const SymShape* const shape = context.shape(0);
  if (shape == nullptr) {
    context.set_output(0, DType::string);
    return context.set_output(1, DType::i64);
  }
  std::vector<Dim> dims = shape->dims();
  dims.emplace_back();
  context.set_output(0, DType::string, SymShape(std::move(dims)));
  context.set_output(1, DType::i64, *shape);
}

/// Refuses here what Regex does not take, so that a model with it is refused before it runs.
void require_pattern(const InferContext& context) {
  try {
    Regex(context.attributes().get_string("pattern", ""));
  } catch (const Error& error) {
    const bool is_malformed = error.kind() == ErrorKind::argument;
    context.fail(is_malformed ? ErrorKind::model : error.kind(), error.what());
  }
}

void infer_regex_full_match(InferContext& context) {
  require_strings(context, 0);
  require_pattern(context);
  const SymShape* const shape = context.shape(0);
  context.set_output(0, DType::boolean, shape == nullptr ? std::nullopt : std::optional(*shape));
}

/// x [C] or [1,C]; how many remain depends on data.
void infer_string_normalizer(InferContext& context) {
  require_strings(context, 0);
  context.require_rank(0, 1, 2);
  const SymShape* const shape = context.shape(0);
  if (shape == nullptr) return context.set_output(0, DType::string);
  context.set_output(0, DType::string,
                     shape->rank() == 1 ? SymShape{Dim()} : SymShape{Dim(1), Dim()});
}

/// Strings are no samples: see text_test.cpp.
}  // namespace

/// StringConcat, StringSplit, StringNormalizer, RegexFullMatch.
void register_text(OpRegistry& registry) {
  registry.add({.name = "StringConcat",
                .since = {{20}},
                .inputs = {{"X"}, {"Y"}},
                .outputs = {{"Z"}},
                .infer = infer_string_concat,
                .is_dynamic = true,
                .backward = kTexts,
                .samples = no_samples});
  registry.add(
      {.name = "StringSplit",
       .since = {{20}},
       .inputs = {{"X"}},
       .outputs = {{"Y"}, {"Z"}},
       .attributes = {{"delimiter", AttributeType::text}, {"maxsplit", AttributeType::integer}},
       .infer = infer_string_split,
       .is_dynamic = true,
       .backward = kTexts,
       .samples = no_samples});
  registry.add({.name = "RegexFullMatch",
                .since = {{20}},
                .inputs = {{"X"}},
                .outputs = {{"Y"}},
                .attributes = {{"pattern", AttributeType::text, true}},
                .infer = infer_regex_full_match,
                .is_dynamic = true,
                .backward = kTexts,
                .samples = no_samples});
  registry.add({.name = "StringNormalizer",
                .since = {{10}},
                .inputs = {{"X"}},
                .outputs = {{"Y"}},
                .attributes = {{"case_change_action", AttributeType::text},
                               {"is_case_sensitive", AttributeType::integer},
                               {"locale", AttributeType::text},
                               {"stopwords", AttributeType::texts}},
                .infer = infer_string_normalizer,
                .is_dynamic = true,
                .backward = kTexts,
                .samples = no_samples});
}

}  // namespace graft
