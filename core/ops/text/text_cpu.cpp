#include <algorithm>

#include "core/base/regex.h"
#include "core/ops/kernels/broadcast.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

/// For each element of `to`, row-major, the element of `from` that broadcasts to it.
std::vector<std::size_t> broadcast_indices(const Shape& from, const Shape& to) {
  std::vector<std::size_t> indices(static_cast<std::size_t>(to.size()));
  const std::vector<std::int64_t> rows = to.strides();
  const std::vector<std::int64_t> steps = broadcast_strides(from, to);
  for (std::int64_t i = 0; i < to.size(); ++i) {
    std::int64_t at = 0;
    for (int axis = 0; axis < to.rank(); ++axis) {
      const auto a = static_cast<std::size_t>(axis);
      at += i / rows[a] % to[axis] * steps[a];
    }
    indices[static_cast<std::size_t>(i)] = static_cast<std::size_t>(at);
  }
  return indices;
}

/// Calls visit(x, y) for each pair of broadcast strings, in order; returns the common shape.
template <class Visit>
Shape for_each_pair(const DynamicCall& call, const Visit& visit) {
  const Tensor& x = call.tensor(0);
  const Tensor& y = call.tensor(1);
  const Shape shape = broadcast(x.shape(), y.shape(), call.node().label());
  const std::vector<std::size_t> of_x = broadcast_indices(x.shape(), shape);
  const std::vector<std::size_t> of_y = broadcast_indices(y.shape(), shape);
  for (std::size_t i = 0; i < of_x.size(); ++i) {
    visit(x.strings()[of_x[i]], y.strings()[of_y[i]]);
  }
  return shape;
}

std::vector<Datum> string_concat(const DynamicCall& call) {
  std::vector<std::string> results;
  const Shape shape = for_each_pair(
      call, [&](const std::string& x, const std::string& y) { results.push_back(x + y); });
  return {Tensor::from_strings(shape, std::move(results))};
}

/// Equal of string tensors; numbers have kernels of their own.
std::vector<Datum> string_equal(const DynamicCall& call) {
  std::vector<std::uint8_t> results;
  const Shape shape = for_each_pair(
      call, [&](const std::string& x, const std::string& y) { results.push_back(x == y ? 1 : 0); });
  return {Tensor::from(shape, results).cast(DType::boolean)};
}

using Parts = std::vector<std::string>;

/// At most `most` cuts; no limit when negative.
Parts split_at(const std::string& text, const std::string& delimiter, std::int64_t most) {
  Parts parts;
  std::size_t start = 0;
  while (most < 0 || static_cast<std::int64_t>(parts.size()) < most) {
    const std::size_t end = text.find(delimiter, start);
    if (end == std::string::npos) break;
    parts.push_back(text.substr(start, end - start));
    start = end + delimiter.size();
  }
  parts.push_back(text.substr(start));
  return parts;
}

/// Words between runs of white space; what remains after `most` cuts keeps its inner white space.
Parts split_words(const std::string& text, std::int64_t most) {
  static constexpr const char* kWhite = " \t\n\r\v\f";
  Parts parts;
  std::size_t start = text.find_first_not_of(kWhite);
  while (start != std::string::npos) {
    if (most >= 0 && static_cast<std::int64_t>(parts.size()) == most) {
      parts.push_back(text.substr(start));
      break;
    }
    const std::size_t end = text.find_first_of(kWhite, start);
    parts.push_back(text.substr(start, end - start));
    start = text.find_first_not_of(kWhite, end);
  }
  return parts;
}

std::vector<Datum> string_split(const DynamicCall& call) {
  const Tensor& x = call.tensor(0);
  const std::string delimiter = call.attributes().get_string("delimiter", "");
  const std::int64_t most = call.attributes().get_int("maxsplit", -1);
  std::vector<Parts> split;
  std::vector<std::int64_t> lengths;
  std::size_t longest = 0;
  for (const std::string& text : x.strings()) {
    split.push_back(delimiter.empty() ? split_words(text, most) : split_at(text, delimiter, most));
    lengths.push_back(static_cast<std::int64_t>(split.back().size()));
    longest = std::max(longest, split.back().size());
  }
  std::vector<std::int64_t> dims = x.shape().dims();
  dims.push_back(static_cast<std::int64_t>(longest));
  Parts all;
  for (Parts& parts : split) {
    parts.resize(longest);
    std::ranges::move(parts, std::back_inserter(all));
  }
  return {Tensor::from_strings(Shape(std::move(dims)), std::move(all)),
          Tensor::from(x.shape(), lengths)};
}

/// Letters of ASCII only, whatever the locale: the same file gives the same result everywhere.
std::string with_case(std::string text, bool upper) {
  for (char& c : text) {
    if (upper && c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    if (!upper && c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

std::vector<std::string> stop_words(const DynamicCall& call, bool ignores_case) {
  const Attribute* const found = call.attributes().find("stopwords");
  if (found == nullptr) return {};
  const auto* const words = std::get_if<std::vector<std::string>>(&found->value);
  if (words == nullptr) call.fail(ErrorKind::type, "stopwords are not strings");
  std::vector<std::string> result = *words;
  for (std::string& word : result) {
    if (ignores_case) word = with_case(std::move(word), false);
  }
  return result;
}

std::vector<Datum> string_normalizer(const DynamicCall& call) {
  const Tensor& x = call.tensor(0);
  if (x.rank() == 0 || x.rank() > 2 || (x.rank() == 2 && x.shape()[0] != 1)) {
    call.fail(ErrorKind::shape, "x is ", x, ", wanted [C] or [1,C]");
  }
  const std::string action = call.attributes().get_string("case_change_action", "NONE");
  if (action != "NONE" && action != "LOWER" && action != "UPPER") {
    call.fail(ErrorKind::model, "case_change_action '", action, "' is none of NONE, LOWER, UPPER");
  }
  const bool ignores_case = call.attributes().get_int("is_case_sensitive", 0) == 0;
  const std::vector<std::string> stops = stop_words(call, ignores_case);
  std::vector<std::string> kept;
  for (const std::string& text : x.strings()) {
    const std::string compared = ignores_case ? with_case(text, false) : text;
    if (std::ranges::find(stops, compared) != stops.end()) continue;
    kept.push_back(action == "NONE" ? text : with_case(text, action == "UPPER"));
  }
  if (kept.empty()) kept.emplace_back();  // as ONNX wants: one empty string
  const auto count = static_cast<std::int64_t>(kept.size());
  return {Tensor::from_strings(x.rank() == 1 ? Shape{count} : Shape{1, count}, std::move(kept))};
}

std::vector<Datum> regex_full_match(const DynamicCall& call) {
  const Tensor& x = call.tensor(0);
  const Regex regex(call.attributes().get_string("pattern", ""));
  std::vector<std::uint8_t> matches;
  for (const std::string& text : x.strings()) matches.push_back(regex.full_match(text) ? 1 : 0);
  return {Tensor::from(x.shape(), matches).cast(DType::boolean)};
}

}  // namespace

void register_text_cpu(KernelRegistry& registry) {
  registry.add({.op = "StringConcat", .run = string_concat});
  registry.add({.op = "StringSplit", .run = string_split});
  registry.add({.op = "StringNormalizer", .run = string_normalizer});
  registry.add({.op = "RegexFullMatch", .run = regex_full_match});
  registry.add({.op = "Equal", .run = string_equal});
}

}  // namespace graft
