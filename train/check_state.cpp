#include "train/check_state.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "optim/state_names.h"
#include "train/averages.h"

namespace graft {
namespace {

/// What follows "<parameter>." in the names of a parameter's state.
std::vector<std::string> kept_names(const TrainOptions& options) {
  std::vector<std::string> names;
  if (options.optimizer) names = state_names(*options.optimizer);
  if (options.accumulate > 1) names.emplace_back(kAccumulated);
  return names;
}

bool trains(const Trained& trained, const std::string& name) {
  return std::ranges::find(trained.parameters, name) != trained.parameters.end();
}

/// The initializer of which `name` is state; null if there is none. Of two whose names begin alike,
/// "w" and "w.mean", it is the longer.
const Value* owner_of(const Graph& graph, const std::string& name) {
  const Value* best = nullptr;
  for (const Value* value : graph.initializers()) {
    const std::string& own = value->name();
    const bool begins =
        name.size() > own.size() && name.starts_with(own) && name[own.size()] == '.';
    if (begins && (best == nullptr || own.size() > best->name().size())) best = value;
  }
  return best;
}

/// What a tensor is whose name goes on with `rest` behind its owner's: an average, a master, or the
/// one of `kept` that it is called; empty for what no step keeps of that owner. A name that was
/// taken has a number behind it.
std::string kind_of(std::string_view rest, const Value& owner, bool trains,
                    const std::vector<std::string>& kept, bool has_averages) {
  if (has_averages && is_name_from(kAverage, rest)) return std::string(kAverage);
  const std::string_view first = rest.substr(0, rest.find('.'));
  if (is_half(owner.dtype()) && is_name_from(kMaster, first)) {
    if (first.size() == rest.size()) return std::string(kMaster);
    rest.remove_prefix(first.size() + 1);  // "<parameter>.master.momentum"
  }
  auto at = std::ranges::find(kept, rest);
  if (at == kept.end()) {
    at = std::ranges::find_if(kept, [&](const std::string& k) { return is_name_from(k, rest); });
  }
  return trains && at != kept.end() ? *at : "";
}

/// In what a step keeps that.
DType type_of(const std::string& kind, const Value& owner, const TrainOptions& options) {
  const bool is_narrow = options.state_precision == StatePrecision::bf16 && kind != kAverage &&
                         kind != kMaster && kind != kAccumulated;
  if (is_narrow) return DType::bf16;
  return is_half(owner.dtype()) ? DType::f32 : owner.dtype();
}

}  // namespace

std::map<std::string, Tensor> weights_of(const Graph& graph, const Trained& trained) {
  std::map<std::string, Tensor> weights;
  for (const Value* value : graph.initializers()) {
    const Tensor& tensor = value->initializer();
    const bool is_large = is_float(tensor.dtype()) && tensor.rank() > 0;
    if (is_large || trains(trained, value->name())) weights.emplace(value->name(), tensor);
  }
  return weights;
}

void check_weights(const std::map<std::string, Tensor>& wanted,
                   const std::map<std::string, Tensor>& found) {
  for (const auto& [name, tensor] : wanted) {
    const auto at = found.find(name);
    if (at == found.end()) fail(ErrorKind::argument, "the state lacks '", name, "' ", tensor);
    if (at->second.dtype() != tensor.dtype() || at->second.shape() != tensor.shape()) {
      fail(ErrorKind::argument, "the state has '", name, "' as ", at->second, ", the model as ",
           tensor);
    }
  }
  for (const auto& [name, tensor] : found) {
    if (!wanted.contains(name)) {
      fail(ErrorKind::argument, "the state holds '", name, "' ", tensor,
           ", which the model does not have");
    }
  }
}

void copy_changed(const std::map<std::string, Tensor>& weights,
                  const std::map<std::string, Tensor>& found) {
  for (const auto& [name, weight] : weights) {
    const Tensor& tensor = found.at(name);
    if (!equal_bits(weight.to(cpu()), tensor)) weight.copy_from(tensor);
  }
}

void check_optimizer_state(const Graph& graph, const Trained& trained, const TrainOptions& options,
                           const TrainState& state) {
  std::vector<std::string> kept = kept_names(options);
  const bool has_averages = options.ema > 0.0F;
  std::set<std::string> found;
  for (const auto& [name, tensor] : state.optimizer) {
    const Value* const owner = owner_of(graph, name);
    const std::string kind = owner == nullptr
                                 ? ""
                                 : kind_of(name.substr(owner->name().size() + 1), *owner,
                                           trains(trained, owner->name()), kept, has_averages);
    if (kind.empty()) {
      fail(ErrorKind::argument, "the state holds '", name,
           "', which no parameter that trains here has: it is of other parameters or another "
           "optimizer");
    }
    const Shape& shape = owner->initializer().shape();
    const DType dtype = type_of(kind, *owner, options);
    if (tensor.shape() != shape || tensor.dtype() != dtype) {
      fail(ErrorKind::argument, "the state has '", name, "' as ", tensor, ", the step keeps ",
           describe(dtype, shape), ": it is of another optimizer or precision");
    }
    found.insert(kind);
  }
  if (state.updates < 0 || state.total_updates < 0 || state.updates > kMostCounted ||
      state.total_updates > kMostCounted) {
    fail(ErrorKind::argument, "the state has ", state.updates, " updates of ", state.total_updates,
         ", wanted 0 to ", kMostCounted);
  }
  const auto has_begun_narrow = [&](const std::string& name) {
    const UpdateGroup* const group = trained.updates.find(name);
    return is_half(graph.find(name)->dtype()) && (group == nullptr || group->start < state.updates);
  };
  if (std::ranges::any_of(trained.parameters, has_begun_narrow)) kept.emplace_back(kMaster);
  if (has_averages) kept.emplace_back(kAverage);
  for (const std::string& kind : kept) {
    if (state.updates == 0 || found.contains(kind)) continue;
    fail(ErrorKind::argument, "the state lacks what the optimizer keeps as '", kind,
         "': it is of another optimizer");
  }
}

}  // namespace graft
