#include "train/trainable.h"

#include <algorithm>
#include <array>
#include <regex>

#include "core/ops/registry.h"

namespace graft {
namespace {

/// Ops that move elements without computing: a weight behind them is still a weight.
bool only_rearranges(const Node& node) {
  static constexpr std::array<std::string_view, 11> kOps{
      "Transpose", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity",
      "Cast",      "Concat",  "Slice",   "Split",     "Expand"};
  return node.domain().empty() && std::ranges::find(kOps, node.op_type()) != kOps.end();
}

bool is_broadcasting_arithmetic(const Node& node) {
  return node.is("Add") || node.is("Sub") || node.is("Mul") || node.is("Div");
}

/// An attention mask that is added: large negative numbers or minus infinity where nothing may
/// flow.
bool looks_like_mask(const Tensor& tensor) {
  constexpr double kMasked = -1e4;
  return std::ranges::any_of(to_double(tensor), [](double value) { return value <= kMasked; });
}

/// In x + c a scalar is a constant of the formula, a larger tensor a bias, unless it masks. So is a
/// factor of one element that the exporter made: the scale of attention, as PyTorch writes it.
bool is_constant_of_arithmetic(const Node& node, const Tensor& tensor, bool is_exporters) {
  if (!is_broadcasting_arithmetic(node)) return false;
  const bool is_factor = node.is("Mul") || node.is("Div");
  return tensor.rank() == 0 || (is_factor && is_exporters && tensor.size() == 1) ||
         looks_like_mask(tensor);
}

/// The scale of ones or the bias of zeros of a normalization that has no parameters: PyTorch's
/// exporters must write them, also before those of GroupNorm. Not of BatchNormalization, which
/// would keep its statistics if neither trained (adr/0004).
bool is_neutral(const Use& use, const Tensor& tensor) {
  const Node& node = *use.node;
  if (!node.op_type().ends_with("Normalization") || node.is("BatchNormalization")) return false;
  const double neutral = use.index == 1 ? 1.0 : 0.0;
  return std::ranges::all_of(to_double(tensor), [=](double value) { return value == neutral; });
}

/// `is_exporters`: is_exporters_constant().
bool reaches_weight_slot(const Value& value, const Tensor& tensor, bool is_exporters) {
  for (const Use& use : value.uses()) {
    const Node& node = *use.node;
    if (only_rearranges(node)) {
      for (int i = 0; i < node.output_count(); ++i) {
        const Value* const moved = node.output(i);
        if (moved != nullptr && reaches_weight_slot(*moved, tensor, is_exporters)) return true;
      }
      continue;
    }
    const OpDef* const def = OpRegistry::instance().find(node);
    if (def == nullptr || std::ranges::find(def->weights, use.index) == def->weights.end()) {
      continue;
    }
    const bool is_part_of_formula = is_constant_of_arithmetic(node, tensor, is_exporters) ||
                                    (is_exporters && is_neutral(use, tensor));
    if (!is_part_of_formula) return true;
  }
  return false;
}

/// "val_7" and "/norm/Constant_1_output_0": as PyTorch's exporters name what the model's source
/// gives no name.
bool is_exporters_name(std::string_view name) {
  constexpr std::string_view kDigits = "0123456789";
  constexpr std::string_view kValue = "val_";
  if (name.starts_with(kValue)) {
    name.remove_prefix(kValue.size());
    return !name.empty() && name.find_first_not_of(kDigits) == name.npos;
  }
  name.remove_prefix(name.rfind('/') + 1);  // nothing where there is none
  return name.starts_with("Constant") && name.ends_with("_output_0");
}

/// The exporter made it of the model's source, where it is no parameter: the file holds it in a
/// Constant node, or did before others simplified it.
bool is_exporters_constant(const Value& value, const Graph* file) {
  const Value* const written = file == nullptr ? nullptr : file->find(value.name());
  return (written != nullptr && !written->is_initializer()) || is_exporters_name(value.name());
}

bool is_candidate(const Value& value, const Graph* file) {
  return (value.dtype() == DType::f32 || value.dtype() == DType::f64) &&
         (file == nullptr || file->find(value.name()) != nullptr);
}

std::regex compile(const std::string& pattern, std::string_view option) {
  try {
    return std::regex(pattern);
  } catch (const std::regex_error& error) {
    fail(ErrorKind::argument, option, " '", pattern, "' is no regular expression: ", error.what());
  }
}

/// std::regex goes one call deeper with each character.
bool matches(const Value& value, const std::regex& pattern) {
  constexpr std::size_t kLongest = 4096;
  if (value.name().size() > kLongest) {
    fail(ErrorKind::unsupported, "a parameter's name of ", value.name().size(),
         " characters is too long for a pattern; the longest is ", kLongest);
  }
  return std::regex_match(value.name(), pattern);
}

std::string some_names(const std::vector<Value*>& values) {
  constexpr std::size_t kMost = 8;
  std::string list;
  for (std::size_t i = 0; i < std::min(values.size(), kMost); ++i) {
    list += (i == 0 ? "" : ", ") + values[i]->name();
  }
  return values.size() > kMost ? list + ", ..." : list;
}

std::vector<Value*> by_pattern(const Graph& graph, const std::string& pattern, const Graph* file) {
  std::vector<Value*> values = default_trainable(graph, file);
  if (pattern.empty()) return values;
  const std::regex wanted = compile(pattern, "trainable pattern");
  std::vector<Value*> matching;
  for (Value* value : values) {
    if (matches(*value, wanted)) matching.push_back(value);
  }
  if (matching.empty()) {
    fail(ErrorKind::argument, "trainable pattern '", pattern, "' matches none of ", values.size(),
         " parameters: ", some_names(values));
  }
  return matching;
}

void drop_frozen(std::vector<Value*>& values, const std::string& pattern) {
  if (pattern.empty()) return;
  const std::regex frozen = compile(pattern, "freeze pattern");
  const std::size_t before = values.size();
  const std::vector<Value*> all = values;
  std::erase_if(values, [&](const Value* v) { return matches(*v, frozen); });
  if (values.size() == before) {
    fail(ErrorKind::argument, "freeze pattern '", pattern, "' matches none of ", before,
         " parameters: ", some_names(all));
  }
}

}  // namespace

std::vector<Value*> default_trainable(const Graph& graph, const Graph* file) {
  std::vector<Value*> values;
  for (Value* value : graph.initializers()) {
    if (is_candidate(*value, file) &&
        reaches_weight_slot(*value, value->initializer(), is_exporters_constant(*value, file))) {
      values.push_back(value);
    }
  }
  return values;
}

std::vector<Value*> choose_trainable(const Graph& graph, const TrainableRequest& request) {
  std::vector<Value*> values;
  if (request.names.empty()) {
    values = by_pattern(graph, request.pattern, request.file);
    drop_frozen(values, request.freeze);
  }
  for (const std::string& name : request.names) {
    Value* const value = graph.find(name);
    if (value == nullptr || !value->is_initializer() || !is_candidate(*value, request.file)) {
      fail(ErrorKind::argument, "'", name, "' is no float initializer of the model");
    }
    values.push_back(value);
  }
  if (values.empty()) fail(ErrorKind::argument, "nothing to train: no parameter is selected");
  return values;
}

}  // namespace graft
