#include "train/training_state.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include "io/safetensors.h"

namespace graft {
namespace {

constexpr std::string_view kWeights = "weights/";
constexpr std::string_view kOptimizer = "optimizer/";
constexpr std::string_view kCallback = "callback/";
constexpr std::string_view kFormat = "graft.training_state";
constexpr std::string_view kVersion = "2";

/// The shortest text that reads back as the same number.
template <class Number>
std::string text_of(Number number) {
  std::array<char, 64> buffer;
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number);
  return {buffer.data(), end};
}

template <class Number>
Number number_of(const std::string& key, const std::string& text) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end) {
    fail(ErrorKind::io, "'", key, "' is '", text, "', wanted a number");
  }
  return number;
}

/// Calls visit(key, number) for each number of the state, in a fixed order.
template <class State, class Visit>
void for_each_number(State& state, const Visit& visit) {
  visit("updates", state.step.updates);
  visit("batches", state.step.batches);
  visit("total_updates", state.step.total_updates);
  visit("base_learning_rate", state.step.base_learning_rate);
  visit("epoch", state.position.epoch);
  visit("batch", state.position.batch);
  visit("loader_epoch", state.position.loader_epoch);
  visit("loss_sum", state.position.loss.sum);
  visit("loss_weight", state.position.loss.weight);
  visit("correct", state.position.correct);
  visit("judged", state.position.judged);
  visit("samples", state.position.samples);
  visit("seconds", state.position.seconds);
}

using Texts = std::map<std::string, std::string>;

void put_position(const RunPosition& position, Texts& texts) {
  if (!position.before) return;
  texts["before.loss"] = text_of(position.before->loss);
  texts["before.samples"] = text_of(position.before->samples);
  if (position.before->accuracy) texts["before.accuracy"] = text_of(*position.before->accuracy);
}

template <class Number>
Number take(const Texts& texts, const std::string& key) {
  const auto at = texts.find(key);
  if (at == texts.end()) fail(ErrorKind::io, "'", key, "' is missing");
  return number_of<Number>(key, at->second);
}

RunPosition take_position(const Texts& texts, RunPosition position) {
  if (position.epoch < 0 || position.batch < 0 || position.loader_epoch < 0) {
    fail(ErrorKind::io, "the place is epoch ", position.epoch, ", batch ", position.batch);
  }
  for (const std::int64_t counted : {position.loader_epoch, position.samples, position.judged}) {
    if (counted < 0 || counted > kMostCounted) {
      fail(ErrorKind::io, "the place is epoch ", position.loader_epoch, " of the loader, ",
           position.samples, " samples, ", position.judged, " judged, wanted 0 to ", kMostCounted);
    }
  }
  if (!texts.contains("before.loss")) return position;
  Evaluation before;
  before.loss = take<double>(texts, "before.loss");
  before.samples = take<std::int64_t>(texts, "before.samples");
  if (texts.contains("before.accuracy")) before.accuracy = take<double>(texts, "before.accuracy");
  position.before = before;
  return position;
}

TrainingState state_of(safetensors::Content content) {
  const Texts texts(content.metadata.begin(), content.metadata.end());
  const auto format = texts.find(std::string(kFormat));
  if (format == texts.end() || format->second != kVersion) {
    fail(ErrorKind::io, "this is no checkpoint that this version reads: ", kFormat, " is '",
         format == texts.end() ? "" : format->second, "', wanted '", kVersion, "'");
  }
  TrainingState state;
  for_each_number(state, [&]<class Number>(const char* key, Number& number) {
    number = take<Number>(texts, key);
  });
  state.position = take_position(texts, state.position);
  for (const auto& [key, text] : texts) {
    if (!key.starts_with(kCallback)) continue;
    const std::string rest = key.substr(kCallback.size());
    const std::size_t slash = rest.rfind('/');
    if (slash == std::string::npos) fail(ErrorKind::io, "'", key, "' names no number");
    state.callbacks[rest.substr(0, slash)][rest.substr(slash + 1)] = number_of<double>(key, text);
  }
  for (NamedTensor& named : content.tensors) {
    const bool is_weight = named.name.starts_with(kWeights);
    if (!is_weight && !named.name.starts_with(kOptimizer)) {
      fail(ErrorKind::io, "tensor '", named.name, "' is neither of weights nor of the optimizer");
    }
    auto& into = is_weight ? state.step.weights : state.step.optimizer;
    into.emplace(named.name.substr((is_weight ? kWeights : kOptimizer).size()),
                 std::move(named.tensor));
  }
  return state;
}

}  // namespace

std::vector<std::string> names_of_state(const std::vector<std::shared_ptr<Callback>>& callbacks) {
  std::vector<std::string> names;
  for (const auto& callback : callbacks) {
    const std::string own = callback->name();
    std::string name = own;
    for (int i = 2; !name.empty() && std::ranges::find(names, name) != names.end(); ++i) {
      name = text(own, '#', i);
    }
    names.push_back(std::move(name));
  }
  return names;
}

void save_training_state(const std::filesystem::path& path, const TrainingState& state) {
  safetensors::Content content;
  for (const auto& [name, tensor] : state.step.weights) {
    content.tensors.push_back({std::string(kWeights) + name, tensor});
  }
  for (const auto& [name, tensor] : state.step.optimizer) {
    content.tensors.push_back({std::string(kOptimizer) + name, tensor});
  }
  Texts texts{{std::string(kFormat), std::string(kVersion)}};
  for_each_number(state, [&](const char* key, auto number) { texts[key] = text_of(number); });
  put_position(state.position, texts);
  for (const auto& [name, numbers] : state.callbacks) {
    for (const auto& [key, number] : numbers) {
      texts[std::string(kCallback) + name + "/" + key] = text_of(number);
    }
  }
  content.metadata.assign(texts.begin(), texts.end());
  safetensors::save(path, content);
}

TrainingState load_training_state(const std::filesystem::path& path) {
  safetensors::Content content = safetensors::load(path);
  try {
    return state_of(std::move(content));
  } catch (const Error& error) {
    fail(error.kind(), "cannot load '", path.string(), "': ", error.what());
  }
}

}  // namespace graft
