#include "core/ops/text/tfidf.h"

#include <algorithm>

#include "core/ops/kernels/window.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

using Ints = std::vector<std::int64_t>;

Ints required_ints(const Node& node, std::string_view name) {
  if (!node.attributes.has(name)) {
    fail(ErrorKind::model, node.label(), ": attribute ", name, " is missing");
  }
  return node.attributes.get_ints(name);
}

std::int64_t number_between(const Node& node, std::string_view name, std::int64_t least) {
  const std::int64_t value = node.attributes.get_int(name, least - 1);
  if (value < least || value > kMostPerAxis) {
    fail(ErrorKind::shape, node.label(), ": ", name, " is ", value, ", wanted ", least, " to ",
         kMostPerAxis);
  }
  return value;
}

}  // namespace

TfIdf::TfIdf(const Node& node)
    : least_length(number_between(node, "min_gram_length", 1)),
      most_length(number_between(node, "max_gram_length", least_length)),
      most_skipped(number_between(node, "max_skip_count", 0)),
      coordinates(required_ints(node, "ngram_indexes")) {
  const std::string mode = node.attributes.get_string("mode", "");
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF") {
    fail(ErrorKind::model, node.label(), ": mode '", mode, "' is none of TF, IDF, TFIDF");
  }
  counts_once = mode == "IDF";
  for (const std::int64_t at : coordinates) {
    if (at < 0 || at > kMostPerAxis) {
      fail(ErrorKind::shape, node.label(), ": ngram_indexes holds ", at, ", wanted 0 to ",
           kMostPerAxis);
    }
    width = std::max(width, at + 1);
  }
  if (mode != "TF") weights = node.attributes.get_floats("weights");
  if (!weights.empty() && std::ssize(weights) < width) {
    fail(ErrorKind::shape, node.label(), ": ", weights.size(), " weights for ", width, " outputs");
  }
  const bool has_strings = node.attributes.has("pool_strings");
  if (has_strings == node.attributes.has("pool_int64s")) {
    fail(ErrorKind::model, node.label(), ": one of pool_strings and pool_int64s must be given");
  }
  if (!has_strings) read_pool(node, node.attributes.get_ints("pool_int64s"));
}

void TfIdf::read_pool(const Node& node, const Ints& pool) {
  const Ints starts = required_ints(node, "ngram_counts");
  const std::int64_t size = std::ssize(pool);
  std::int64_t gram = 0;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const auto length = static_cast<std::int64_t>(i) + 1;
    const std::int64_t end = i + 1 < starts.size() ? starts[i + 1] : size;
    if (starts[i] < 0 || end < starts[i] || end > size || (end - starts[i]) % length != 0) {
      fail(ErrorKind::shape, node.label(), ": ngram_counts does not divide a pool of ", size,
           " numbers: ", length, "-grams from ", starts[i], " to ", end);
    }
    for (std::int64_t at = starts[i]; at < end; at += length)
      add_gram(node, pool, at, length, gram++);
  }
}

void TfIdf::add_gram(const Node& node, const Ints& pool, std::int64_t at, std::int64_t length,
                     std::int64_t gram) {
  if (gram >= std::ssize(coordinates)) {
    fail(ErrorKind::shape, node.label(), ": the pool has more n-grams than ngram_indexes, ",
         coordinates.size());
  }
  if (length < least_length || length > most_length) return;
  std::int64_t prefix = 0;
  for (std::int64_t i = 0; i < length; ++i) {
    const auto next = static_cast<std::int64_t>(grams.size()) + 1;
    const std::int64_t number = pool[static_cast<std::size_t>(at + i)];
    Gram& found = grams.try_emplace({prefix, number}, Gram{next, -1}).first->second;
    prefix = found.prefix;
    if (i + 1 == length) found.coordinate = coordinates[static_cast<std::size_t>(gram)];
  }
}

namespace {

void infer_tfidf(InferContext& context) {
  const TfIdf tfidf(context.node());
  const SymShape* const x = context.shape(0);
  if (x == nullptr) return context.set_output(0, DType::f32);
  context.require_rank(0, 0, 2);
  SymShape y{tfidf.width};
  if (x->rank() == 2) y = {(*x)[0], tfidf.width};
  context.set_output(0, DType::f32, std::move(y));
}

std::vector<Sample> tfidf_samples() {
  const SampleInput x{
      .shape = {2, 6}, .values = {1, 1, 3, 3, 3, 7, 8, 6, 7, 5, 6, 8}, .dtype = DType::i64};
  const auto attributes = [](const char* mode, int least, int most, int skips) {
    return Attributes{{"mode", mode},
                      {"min_gram_length", least},
                      {"max_gram_length", most},
                      {"max_skip_count", skips},
                      {"ngram_counts", Ints{0, 4}},
                      {"ngram_indexes", Ints{0, 1, 2, 3, 4, 5, 6}},
                      {"pool_int64s", Ints{2, 3, 5, 4, 5, 6, 7, 8, 6, 7}}};
  };
  Attributes weighted = attributes("TFIDF", 1, 2, 1);
  weighted.set({"weights", std::vector<float>{1, 2, 3, 4, 5, 6, 7}});
  Attributes once = weighted;
  once.set({"mode", "IDF"});
  return {
      {"words", {x}, attributes("TF", 1, 1, 0)},
      {"pairs", {x}, attributes("TF", 2, 2, 0)},
      {"both_skipping", {x}, attributes("TF", 1, 2, 5)},
      {"weighted", {x}, weighted},
      {"once", {x}, once},
      {"line", {{.shape = {4}, .values = {7, 5, 6, 8}, .dtype = DType::i32}}, weighted},
      {"nothing", {{.shape = {2, 0}, .dtype = DType::i64}}, weighted},
  };
}

}  // namespace

/// TfIdfVectorizer, of integers; that of strings is refused. Weights are those of the outputs, as
/// runtimes take them.
void register_tfidf(OpRegistry& registry) {
  registry.add({.name = "TfIdfVectorizer",
                .since = {{9}},
                .inputs = {{"X"}},
                .outputs = {{"Y"}},
                .attributes = {{"max_gram_length", AttributeType::integer, true},
                               {"max_skip_count", AttributeType::integer, true},
                               {"min_gram_length", AttributeType::integer, true},
                               {"mode", AttributeType::text, true},
                               {"ngram_counts", AttributeType::integers, true},
                               {"ngram_indexes", AttributeType::integers, true},
                               {"pool_int64s", AttributeType::integers},
                               {"pool_strings", AttributeType::texts},
                               {"weights", AttributeType::numbers}},
                .infer = infer_tfidf,
                .backward = NotDifferentiable{"it counts whole numbers or words"},
                .samples = tfidf_samples});
}

}  // namespace graft
