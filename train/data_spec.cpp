#include "train/data_spec.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "data/spec.h"
#include "data/tensor_dataset.h"
#include "io/npz.h"

namespace graft {
namespace {

/// Data sets with a test split whose statistics are known: per channel, of pixels in [0, 1].
struct KnownData {
  std::string_view name;
  std::vector<float> mean;
  std::vector<float> deviation;
};

const std::vector<KnownData>& known_data() {
  static const std::vector<KnownData> known{
      {"fashion-mnist", {0.2860F}, {0.3530F}},
      {"mnist", {0.1307F}, {0.3081F}},
      {"cifar10", {0.4914F, 0.4822F, 0.4465F}, {0.2470F, 0.2435F, 0.2616F}},
  };
  return known;
}

const KnownData* find_known(std::string_view spec) {
  const auto at = std::ranges::find(known_data(), spec.substr(0, spec.find(':')), &KnownData::name);
  return at == known_data().end() ? nullptr : &*at;
}

constexpr std::string_view kNpz = "npz:";
constexpr std::string_view kCsv = "csv:";

/// The file of a spec of that form; empty for others.
std::string file_of(std::string_view spec, std::string_view form) {
  return std::string(spec.starts_with(form) ? spec.substr(form.size()) : std::string_view());
}

/// The name without "_train" or "_test"; empty when it does not end in `suffix`.
std::string stem(const std::string& name, std::string_view suffix) {
  return name.ends_with(suffix) ? name.substr(0, name.size() - suffix.size()) : std::string();
}

/// The arrays of the split, under their names without its suffix. The others are not read.
std::vector<NamedTensor> load_split(const std::string& path, Split split) {
  const std::string wanted = "_" + std::string(name(split));
  const std::string other = split == Split::train ? "_test" : "_train";
  const bool has_splits = std::ranges::any_of(npz::names(path), [&](const std::string& array) {
    return !stem(array, wanted).empty() || !stem(array, other).empty();
  });
  if (!has_splits) return npz::load(path);
  std::vector<NamedTensor> chosen =
      npz::load(path, [&](const std::string& array) { return !stem(array, wanted).empty(); });
  for (NamedTensor& array : chosen) array.name = stem(array.name, wanted);
  return chosen;
}

constexpr std::array<std::string_view, 5> kTargets{"target", "targets", "label", "labels", "y"};

bool is_target(const std::string& name) {
  return std::ranges::find(kTargets, name) != kTargets.end();
}

/// "target_boxes": one of several targets, in files that have no plain one.
bool is_one_target(const std::string& name) {
  return std::ranges::any_of(
      kTargets, [&](std::string_view target) { return name.starts_with(text(target, "_")); });
}

std::shared_ptr<Dataset> open_npz(const std::string& path, Split split, const WantedTypes& wanted) {
  std::vector<NamedSamples> inputs;
  std::vector<NamedSamples> targets;
  std::vector<NamedTensor> arrays = load_split(path, split);
  const bool has_plain =
      std::ranges::any_of(arrays, [](const NamedTensor& array) { return is_target(array.name); });
  for (NamedTensor& array : arrays) {
    if (has_plain ? is_target(array.name) : is_one_target(array.name)) {
      const DType type = is_float(array.tensor.dtype()) ? wanted.target : DType::undefined;
      targets.push_back({std::move(array.name), std::move(array.tensor), type});
    } else {
      const std::size_t at = inputs.size();
      const DType type = at < wanted.inputs.size() ? wanted.inputs[at] : DType::undefined;
      inputs.push_back({std::move(array.name), std::move(array.tensor), type});
    }
  }
  if (targets.empty() || (has_plain && targets.size() != 1) || inputs.empty()) {
    fail(ErrorKind::io, path, ": the ", name(split), " split has ", inputs.size(), " inputs and ",
         targets.size(),
         " targets, wanted at least one input and one array called target, label or y, or several "
         "called target_NAME");
  }
  NamedSamples first = std::move(targets.front());
  targets.erase(targets.begin());
  return tensor_dataset(std::move(inputs), std::move(first), 0, std::move(targets));
}

}  // namespace

std::shared_ptr<Dataset> open_data(std::string_view spec, Split split, const WantedTypes& wanted) {
  const std::string arrays = file_of(spec, kNpz);
  if (!arrays.empty()) return open_npz(arrays, split, wanted);
  const std::string lines = file_of(spec, kCsv);
  if (!lines.empty()) return csv(lines, wanted.csv_target);
  static constexpr std::array kSources{
      DataSource{"npz", "FILE", false, nullptr}};  // for the messages
  return open_dataset(spec, split, kSources);
}

bool has_test_split(std::string_view spec) {
  if (!spec.starts_with(kNpz)) return find_known(spec) != nullptr;
  return std::ranges::any_of(npz::names(spec.substr(kNpz.size())), [](const std::string& array) {
    return !stem(array, "_test").empty();
  });
}

std::optional<Normalize> known_normalization(std::string_view spec) {
  const KnownData* const known = find_known(spec);
  if (known == nullptr) return std::nullopt;
  return Normalize{known->mean, known->deviation};
}

}  // namespace graft
