#include "train/trainable.h"

#include <algorithm>
#include <unordered_set>

#include "core/base/regex.h"
#include "core/graph/edit.h"
#include "core/graph/frozen.h"
#include "core/graph/reads.h"
#include "core/layers/fix_input.h"
#include "core/ops/registry.h"
#include "io/onnx.h"

namespace graft {
namespace {

/// Whether a read of the value, or of what only rearranges it, is a wanted one.
template <class IsWanted>
bool any_read(const Value& value, IsWanted&& is_wanted) {
  std::vector<const Value*> open{&value};
  std::unordered_set<const Value*> seen{&value};
  while (!open.empty()) {
    const Value& next = *open.back();
    open.pop_back();
    for (const Use& use : next.uses()) {
      if (!only_rearranges(use)) {
        if (is_wanted(use)) return true;
        continue;
      }
      for (int i = 0; i < use.node->output_count(); ++i) {
        const Value* const moved = use.node->output(i);
        if (moved != nullptr && seen.insert(moved).second) open.push_back(moved);
      }
    }
  }
  return false;
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
bool is_constant_of_arithmetic(const Node& node, const Tensor& tensor, Role role) {
  if (!is_broadcasting_arithmetic(node)) return false;
  const bool is_factor = node.is("Mul") || node.is("Div");
  return tensor.rank() == 0 || (is_factor && role == Role::folded && tensor.size() == 1) ||
         looks_like_mask(tensor);
}

/// The scale of ones or the bias of zeros of a normalization that has no parameters: PyTorch's
/// exporters must write them, also before those of GroupNorm.
bool is_neutral(const Use& use, const Tensor& tensor) {
  const Node& node = *use.node;
  if (!node.op_type().ends_with("Normalization")) return false;
  const double neutral = use.index == 1 ? 1.0 : 0.0;
  return std::ranges::all_of(to_double(tensor), [=](double value) { return value == neutral; });
}

bool is_part_of_formula(const Use& use, const Tensor& tensor, Role role) {
  return is_constant_of_arithmetic(*use.node, tensor, role) ||
         (role == Role::folded && is_neutral(use, tensor));
}

bool reaches_weight_slot(const Value& value) {
  return any_read(value, [&](const Use& use) {
    const OpDef* const def = OpRegistry::instance().find(*use.node);
    return def != nullptr && std::ranges::find(def->weights, use.index) != def->weights.end() &&
           !is_part_of_formula(use, value.initializer(), value.role);
  });
}

/// Where the role leaves it open, the slots that read the value decide.
bool trains(const Value& value) {
  switch (value.role) {
    case Role::parameter:
      return true;
    case Role::buffer:
    case Role::statistic:
    case Role::constant:
      return false;
    case Role::unknown:
    case Role::folded:
      break;
  }
  return reaches_weight_slot(value);
}

bool is_candidate(const Value& value, const Graph* file) {
  return is_float(value.dtype()) && (file == nullptr || file->find(value.name()) != nullptr);
}

/// `option` names what holds the pattern.
Regex compile(const std::string& pattern, std::string_view option) {
  try {
    return Regex(pattern);
  } catch (const Error& error) {
    fail(error.kind(), option, " ", error.what());
  }
}

std::string some_names(const std::vector<Value*>& values) {
  std::vector<std::string> names;
  for (const Value* value : values) names.push_back(value->name());
  return some_of(names);
}

std::vector<Value*> by_pattern(const Graph& graph, const std::string& pattern, const Graph* file) {
  std::vector<Value*> values = default_trainable(graph, file);
  if (pattern.empty()) return values;
  const Regex wanted = compile(pattern, "trainable pattern");
  std::vector<Value*> matching;
  for (Value* value : values) {
    if (wanted.full_match(value->name())) matching.push_back(value);
  }
  if (matching.empty()) {
    fail(ErrorKind::argument, "trainable pattern '", pattern, "' matches none of ", values.size(),
         " parameters: ", some_names(values));
  }
  return matching;
}

void drop_frozen(std::vector<Value*>& values, const std::string& pattern) {
  if (pattern.empty()) return;
  const Regex frozen = compile(pattern, "freeze pattern");
  const std::size_t before = values.size();
  const std::vector<Value*> all = values;
  std::erase_if(values, [&](const Value* v) { return frozen.full_match(v->name()); });
  if (values.size() == before) {
    fail(ErrorKind::argument, "freeze pattern '", pattern, "' matches none of ", before,
         " parameters: ", some_names(all));
  }
}

[[noreturn]] void refuse_nothing(const Graph& graph) {
  std::string hint;
  for (const Value* input : edit::inputs_that_choose_weights(graph)) {
    hint += text("; weights lie in branches that input '", input->name(),
                 "' chooses between: make it a constant by edit --set ", input->name(), "=VALUE");
  }
  fail(ErrorKind::argument, "nothing to train: no parameter is selected", hint);
}

}  // namespace

std::string some_of(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 8;
  std::string list;
  for (std::size_t i = 0; i < std::min(names.size(), kMost); ++i) {
    list += (i == 0 ? "" : ", ") + names[i];
  }
  return names.size() > kMost ? list + ", ..." : list;
}

void separate_parameters(Graph& graph) {
  edit::separate_initializers(graph);
  onnx::separate_merged(graph);
}

void separate_parameters(Model& model) {
  const std::size_t known = model.graph().initializers().size();
  separate_parameters(model.graph());
  if (edit::frozen_names(model).empty()) return;
  const auto& all = model.graph().initializers();
  const std::unordered_set<const Value*> fresh(all.begin() + static_cast<std::ptrdiff_t>(known),
                                               all.end());
  edit::freeze(model, [&](const Value& value) {
    return fresh.contains(&value) && (value.role == Role::buffer || value.role == Role::constant);
  });
}

std::size_t take_parameters(Model& to, const Model& from) {
  separate_parameters(to);
  std::size_t count = 0;
  for (Value* const value : to.graph().initializers()) {
    const Value* const trained = from.graph().find(value->name());
    if (trained == nullptr || !trained->is_initializer()) continue;
    const Tensor& own = value->initializer();
    const Tensor& other = trained->initializer();
    if (own.data() == other.data() || own.dtype() != other.dtype() ||
        own.shape() != other.shape()) {
      continue;
    }
    value->set_initializer(other);
    ++count;
  }
  return count;
}

std::vector<Value*> default_trainable(const Graph& graph, const Graph* file) {
  std::vector<Value*> values;
  for (Value* value : graph.initializers()) {
    if (is_candidate(*value, file) && trains(*value)) values.push_back(value);
  }
  return values;
}

std::string why_frozen(const Value& value) {
  if (!is_candidate(value, nullptr)) return text(value.dtype(), " does not train");
  if (trains(value)) return {};
  switch (value.role) {
    case Role::buffer:
      return "a buffer of the program that was exported, or frozen in the file";
    case Role::statistic:
      return "a running statistic, which follows the batches";
    case Role::constant:
      return "a constant of the program that was exported";
    case Role::parameter:
    case Role::unknown:
    case Role::folded:
      break;
  }
  return "nothing reads it as a weight";
}

std::vector<Value*> scales_without_parameters(const Graph& graph, const Graph* file) {
  const auto is_one = [&](const Use& use, const Value& scale) {
    if (!use.node->is("BatchNormalization") || use.index != 1) return false;
    return (scale.role == Role::constant || scale.role == Role::folded) &&
           is_neutral(use, scale.initializer());
  };
  std::vector<Value*> scales;
  for (Value* value : graph.initializers()) {
    const auto reads_it = [&](const Use& use) { return is_one(use, *value); };
    if (is_candidate(*value, file) && std::ranges::any_of(value->uses(), reads_it)) {
      scales.push_back(value);
    }
  }
  return scales;
}

std::vector<Value*> running_statistics(const Graph& graph) {
  const auto is_variable = [](const Value* value) {
    return value != nullptr && value->is_variable;
  };
  std::vector<Value*> all;
  for (const auto& node : graph.nodes()) {
    for_each_body(*node, [&](const Graph& body) {
      const std::vector<Value*> more = running_statistics(body);
      all.insert(all.end(), more.begin(), more.end());
    });
    if (!node->is("BatchNormalization")) continue;
    if (!is_variable(node->input(1)) && !is_variable(node->input(2))) continue;
    for (const int statistic : {3, 4}) {
      Value* const value = node->input(statistic);
      if (value->is_initializer()) all.push_back(value);
    }
  }
  return all;
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
  if (values.empty()) refuse_nothing(graph);
  return values;
}

}  // namespace graft
