#include "core/layers/parse.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>

#include "core/base/closest.h"
#include "core/base/error.h"

namespace graft {
namespace {

std::vector<std::string_view> split(std::string_view list, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = list.find(separator);
    parts.push_back(list.substr(0, end));
    if (end == std::string_view::npos) return parts;
    list.remove_prefix(end + 1);
  }
}

/// What follows a layer's name. Each argument is taken once; `finish` refuses those left.
class Arguments {
 public:
  Arguments(std::string_view layer, std::string_view usage, std::vector<std::string_view> words)
      : layer_(layer), usage_(usage), words_(std::move(words)) {}

  [[noreturn]] void refuse(std::string_view what) const {
    fail(ErrorKind::argument, "layer '", layer_, "': ", what, "; write it as ", usage_);
  }

  /// The argument without a key; nullopt when there is none.
  std::optional<std::string_view> positional() {
    return take([](std::string_view word) { return word.find('=') == word.npos; });
  }
  std::optional<std::string_view> keyed(std::string_view key) {
    const auto word = take([&](std::string_view candidate) {
      return candidate.size() > key.size() && candidate[key.size()] == '=' &&
             candidate.starts_with(key);
    });
    return word ? std::optional(word->substr(key.size() + 1)) : std::nullopt;
  }

  template <class T>
  T number(std::string_view word) const {
    T value{};
    const char* const end = word.data() + word.size();
    const auto [stop, error] = std::from_chars(word.data(), end, value);
    if (word.empty() || error != std::errc() || stop != end) {
      refuse(
          text("'", word, "' is no ", std::is_integral_v<T> ? "integer" : "number", " that fits"));
    }
    return value;
  }
  template <class T>
  T number_or(std::optional<std::string_view> word, T fallback) const {
    return word ? number<T>(*word) : fallback;
  }
  /// "3x3" -> 3, 3.
  std::vector<std::int64_t> numbers(std::string_view word) const {
    std::vector<std::int64_t> values;
    for (const std::string_view part : split(word, 'x')) {
      values.push_back(number<std::int64_t>(part));
    }
    return values;
  }
  std::vector<std::int64_t> numbers_or(std::optional<std::string_view> word,
                                       const std::vector<std::int64_t>& fallback) const {
    return word ? numbers(*word) : fallback;
  }
  bool flag(std::string_view key, bool fallback) {
    const auto word = keyed(key);
    if (!word) return fallback;
    if (*word != "0" && *word != "1") refuse(text(key, " is '", *word, "', wanted 0 or 1"));
    return *word == "1";
  }
  std::optional<std::uint64_t> seed() {
    const auto word = keyed("seed");
    return word ? std::optional(number<std::uint64_t>(*word)) : std::nullopt;
  }
  std::string name() { return std::string(keyed("name").value_or("")); }

  void finish() const {
    if (!words_.empty()) refuse(text("'", words_[0], "' is not understood"));
  }

 private:
  template <class Matches>
  std::optional<std::string_view> take(const Matches& matches) {
    const auto found = std::find_if(words_.begin(), words_.end(), matches);
    if (found == words_.end()) return std::nullopt;
    const std::string_view word = *found;
    words_.erase(found);
    return word;
  }

  std::string_view layer_;
  std::string_view usage_;
  std::vector<std::string_view> words_;
};

Layer parse_linear(Arguments& arguments) {
  const auto out = arguments.positional();
  if (!out) arguments.refuse("the number of outputs is missing");
  return Linear{.name = arguments.name(),
                .out = arguments.number<std::int64_t>(*out),
                .bias = arguments.flag("bias", true),
                .seed = arguments.seed()};
}

Layer parse_conv(Arguments& arguments) {
  const auto size = arguments.positional();
  if (!size) arguments.refuse("the number of channels is missing");
  std::vector<std::int64_t> numbers = arguments.numbers(*size);
  Conv conv{.name = arguments.name(), .out = numbers[0]};
  if (numbers.size() > 1) conv.kernel.assign(numbers.begin() + 1, numbers.end());
  conv.stride = arguments.numbers_or(arguments.keyed("stride"), conv.stride);
  conv.padding = arguments.numbers_or(arguments.keyed("padding"), conv.padding);
  conv.dilation = arguments.numbers_or(arguments.keyed("dilation"), conv.dilation);
  conv.groups = arguments.number_or(arguments.keyed("groups"), conv.groups);
  conv.bias = arguments.flag("bias", true);
  conv.seed = arguments.seed();
  return conv;
}

template <class Pool>
Layer parse_pool(Arguments& arguments) {
  Pool pool{.name = arguments.name()};
  pool.kernel = arguments.numbers_or(arguments.positional(), pool.kernel);
  pool.stride = arguments.numbers_or(arguments.keyed("stride"), pool.stride);
  pool.padding = arguments.numbers_or(arguments.keyed("padding"), pool.padding);
  return pool;
}

Layer parse_batch_norm(Arguments& arguments) {
  BatchNorm norm{.name = arguments.name()};
  norm.epsilon = arguments.number_or(arguments.keyed("epsilon"), norm.epsilon);
  norm.momentum = arguments.number_or(arguments.keyed("momentum"), norm.momentum);
  return norm;
}

/// A layer with at most one number, that stands without a key.
template <class Kind, auto Member>
Layer parse_number(Arguments& arguments) {
  Kind kind{.name = arguments.name()};
  kind.*Member = arguments.number_or(arguments.positional(), kind.*Member);
  return kind;
}

template <class Kind>
Layer parse_plain(Arguments& arguments) {
  return Kind{.name = arguments.name()};
}

struct Row {
  std::string_view name;
  std::string_view usage;
  Layer (*parse)(Arguments& arguments);
};

constexpr Row kRows[] = {
    {"linear", "linear:OUT[:bias=0|1][:seed=N]", parse_linear},
    {"conv",
     "conv:OUT[xKxK][:stride=SxS][:padding=PxP][:dilation=DxD][:groups=N][:bias=0|1][:seed=N]",
     parse_conv},
    {"batch_norm", "batch_norm[:epsilon=E][:momentum=M]", parse_batch_norm},
    {"relu", "relu", parse_plain<Relu>},
    {"relu6", "relu6", parse_plain<Relu6>},
    {"leaky_relu", "leaky_relu[:ALPHA]", parse_number<LeakyRelu, &LeakyRelu::alpha>},
    {"sigmoid", "sigmoid", parse_plain<Sigmoid>},
    {"tanh", "tanh", parse_plain<Tanh>},
    {"gelu", "gelu", parse_plain<Gelu>},
    {"silu", "silu", parse_plain<Silu>},
    {"softmax", "softmax[:AXIS]", parse_number<Softmax, &Softmax::axis>},
    {"log_softmax", "log_softmax[:AXIS]", parse_number<LogSoftmax, &LogSoftmax::axis>},
    {"max_pool", "max_pool[:KxK][:stride=SxS][:padding=PxP]", parse_pool<MaxPool>},
    {"average_pool", "average_pool[:KxK][:stride=SxS][:padding=PxP]", parse_pool<AveragePool>},
    {"global_average_pool", "global_average_pool", parse_plain<GlobalAveragePool>},
    {"flatten", "flatten", parse_plain<Flatten>},
    {"dropout", "dropout[:RATIO]", parse_number<Dropout, &Dropout::ratio>},
};

/// Lower case, without '_'.
std::string plain(std::string_view name) {
  std::string result;
  for (const char c : name) {
    if (c != '_') result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return result;
}

Layer parse_layer(std::string_view written) {
  std::vector<std::string_view> words = split(written, ':');
  const std::string_view name = words[0];
  for (const Row& row : kRows) {
    if (plain(row.name) != plain(name)) continue;
    words.erase(words.begin());
    Arguments arguments(written, row.usage, std::move(words));
    Layer layer = row.parse(arguments);
    arguments.finish();
    return layer;
  }
  std::vector<std::string_view> known;
  for (const Row& row : kRows) known.push_back(row.name);
  const std::vector<std::string> close = closest(name, known);
  fail(ErrorKind::argument, "no layer is called '", name, "'",
       close.empty() ? "" : ", perhaps you mean " + quoted_list(close),
       "; layers are: ", quoted_list({known.begin(), known.end()}));
}

}  // namespace

std::vector<Layer> parse_layers(std::string_view list) {
  std::vector<Layer> layers;
  for (const std::string_view part : split(list, ',')) layers.push_back(parse_layer(part));
  return layers;
}

std::vector<std::string> layer_usages() {
  std::vector<std::string> usages;
  for (const Row& row : kRows) usages.emplace_back(row.usage);
  return usages;
}

}  // namespace graft
