#include "core/layers/parse.h"

#include <cctype>
#include <optional>

#include "core/base/closest.h"
#include "core/layers/parse_internal.h"

namespace graft {
namespace {

Layer parse_linear(Arguments& arguments) {
  const auto out = arguments.positional();
  if (!out) arguments.refuse("the number of outputs is missing");
  return Linear{.name = arguments.name(),
                .out = arguments.number<std::int64_t>(*out),
                .bias = arguments.flag("bias", true),
                .seed = arguments.seed(),
                .init = arguments.init()};
}

Layer parse_cosine(Arguments& arguments) {
  const auto out = arguments.positional();
  if (!out) arguments.refuse("the number of outputs is missing");
  return Cosine{.name = arguments.name(),
                .out = arguments.number<std::int64_t>(*out),
                .seed = arguments.seed(),
                .init = arguments.init()};
}

/// What Conv and ConvTranspose share.
template <class Kind>
Kind read_conv(Arguments& arguments) {
  const auto size = arguments.positional();
  if (!size) arguments.refuse("the number of channels is missing");
  std::vector<std::int64_t> numbers = arguments.numbers(*size);
  Kind conv{.name = arguments.name(), .out = numbers[0]};
  if (numbers.size() > 1) conv.kernel.assign(numbers.begin() + 1, numbers.end());
  conv.stride = arguments.numbers_or(arguments.keyed("stride"), conv.stride);
  conv.padding = arguments.numbers_or(arguments.keyed("padding"), conv.padding);
  conv.dilation = arguments.numbers_or(arguments.keyed("dilation"), conv.dilation);
  conv.groups = arguments.number_or(arguments.keyed("groups"), conv.groups);
  conv.bias = arguments.flag("bias", true);
  conv.seed = arguments.seed();
  conv.init = arguments.init();
  return conv;
}

Layer parse_conv(Arguments& arguments) {
  return read_conv<Conv>(arguments);
}

Layer parse_conv_transpose(Arguments& arguments) {
  auto conv = read_conv<ConvTranspose>(arguments);
  conv.output_padding =
      arguments.numbers_or(arguments.keyed("output_padding"), conv.output_padding);
  return conv;
}

Layer parse_layer_norm(Arguments& arguments) {
  LayerNorm norm{.name = arguments.name()};
  norm.axes = arguments.number_or(arguments.positional(), norm.axes);
  norm.epsilon = arguments.number_or(arguments.keyed("epsilon"), norm.epsilon);
  norm.bias = arguments.flag("bias", true);
  return norm;
}

Layer parse_group_norm(Arguments& arguments) {
  const auto groups = arguments.positional();
  if (!groups) arguments.refuse("the number of groups is missing");
  GroupNorm norm{.name = arguments.name(), .groups = arguments.number<std::int64_t>(*groups)};
  norm.epsilon = arguments.number_or(arguments.keyed("epsilon"), norm.epsilon);
  return norm;
}

Layer parse_reshape(Arguments& arguments) {
  const auto shape = arguments.positional();
  if (!shape) arguments.refuse("the dims of a sample are missing");
  return Reshape{.name = arguments.name(), .shape = arguments.numbers(*shape)};
}

Layer parse_embedding(Arguments& arguments) {
  const auto size = arguments.positional();
  const auto numbers = size ? arguments.numbers(*size) : std::vector<std::int64_t>();
  if (numbers.size() != 2) arguments.refuse("wanted how many rows there are, and their size");
  return Embedding{.name = arguments.name(),
                   .count = numbers[0],
                   .size = numbers[1],
                   .seed = arguments.seed(),
                   .init = arguments.init()};
}

template <class Kind>
Layer parse_recurrent(Arguments& arguments) {
  const auto hidden = arguments.positional();
  if (!hidden) arguments.refuse("the number of hidden features is missing");
  Kind layer{.name = arguments.name(), .hidden = arguments.number<std::int64_t>(*hidden)};
  layer.depth = arguments.number_or(arguments.keyed("depth"), layer.depth);
  layer.bidirectional = arguments.flag("bidirectional", false);
  const std::string_view steps = arguments.keyed("steps").value_or("all");
  if (steps != "all" && steps != "last") {
    arguments.refuse(text("steps is '", steps, "', wanted all or last"));
  }
  layer.steps = steps == "all" ? Steps::all : Steps::last;
  layer.seed = arguments.seed();
  layer.init = arguments.init();
  return layer;
}

Layer parse_attention(Arguments& arguments) {
  const auto heads = arguments.positional();
  if (!heads) arguments.refuse("the number of heads is missing");
  return MultiHeadAttention{.name = arguments.name(),
                            .heads = arguments.number<std::int64_t>(*heads),
                            .bias = arguments.flag("bias", true),
                            .seed = arguments.seed(),
                            .init = arguments.init()};
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
    {"cosine", "cosine:OUT[:seed=N]", parse_cosine},
    {"conv",
     "conv:OUT[xKxK][:stride=SxS][:padding=PxP][:dilation=DxD][:groups=N][:bias=0|1][:seed=N]",
     parse_conv},
    {"conv_transpose", "conv_transpose:OUT[xKxK][:output_padding=PxP], and as conv",
     parse_conv_transpose},
    {"batch_norm", "batch_norm[:epsilon=E][:momentum=M]", parse_batch_norm},
    {"layer_norm", "layer_norm[:AXES][:epsilon=E][:bias=0|1]", parse_layer_norm},
    {"group_norm", "group_norm:GROUPS[:epsilon=E]", parse_group_norm},
    {"embedding", "embedding:ROWSxSIZE[:seed=N]", parse_embedding},
    {"lstm", "lstm:HIDDEN[:depth=N][:bidirectional=0|1][:steps=all|last][:seed=N]",
     parse_recurrent<Lstm>},
    {"gru", "gru:HIDDEN[:depth=N][:bidirectional=0|1][:steps=all|last][:seed=N]",
     parse_recurrent<Gru>},
    {"multi_head_attention", "multi_head_attention:HEADS[:bias=0|1][:seed=N]", parse_attention},
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
    {"reshape", "reshape:DIMxDIM...", parse_reshape},
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
    Arguments arguments(text("layer '", written, "'"), row.usage, std::move(words));
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

constexpr std::string_view kInitUsage =
    "INIT: uniform_fan_in, kaiming_uniform, kaiming_normal [:fan=in|out][:slope=A], "
    "xavier_uniform, xavier_normal [:gain=G], normal:std=S[:mean=M], zeros, constant:value=V";

}  // namespace

std::optional<Init> Arguments::init() {
  const auto name = keyed("init");
  return name ? std::optional(read_init(*name, *this)) : std::nullopt;
}

Init read_init(std::string_view name, Arguments& arguments) {
  Init init = init_of(name);
  if (init.kind == Init::kaiming_uniform || init.kind == Init::kaiming_normal) {
    const std::string_view fan = arguments.keyed("fan").value_or("in");
    if (fan != "in" && fan != "out") {
      arguments.refuse(text("fan is '", fan, "', wanted in or out"));
    }
    init.fan_out = fan == "out";
    init.slope = arguments.number_or(arguments.keyed("slope"), init.slope);
  } else if (init.kind == Init::xavier_uniform || init.kind == Init::xavier_normal) {
    init.gain = arguments.number_or(arguments.keyed("gain"), init.gain);
  } else if (init.kind == Init::normal) {
    const auto deviation = arguments.keyed("std");
    if (!deviation) arguments.refuse("normal wants its standard deviation, std=S");
    init.deviation = arguments.number<double>(*deviation);
    init.mean = arguments.number_or(arguments.keyed("mean"), init.mean);
  } else if (name == "constant") {
    const auto value = arguments.keyed("value");
    if (!value) arguments.refuse("constant wants its value, value=V");
    init.value = arguments.number<double>(*value);
  }
  return init;
}

std::string_view init_usage() {
  return kInitUsage;
}

std::vector<Layer> parse_layers(std::string_view list) {
  std::vector<Layer> layers;
  for (const std::string_view part : split(list, ',')) layers.push_back(parse_layer(part));
  return layers;
}

Init parse_init(std::string_view written) {
  std::vector<std::string_view> words = split(written, ':');
  const std::string_view name = words[0];
  words.erase(words.begin());
  Arguments arguments(text("initializer '", written, "'"), kInitUsage, std::move(words));
  const Init init = read_init(name, arguments);
  arguments.finish();
  return init;
}

std::vector<std::string> layer_usages() {
  std::vector<std::string> usages;
  for (const Row& row : kRows) usages.emplace_back(row.usage);
  return usages;
}

}  // namespace graft
