#include "train/check_state.h"

#include <algorithm>
#include <set>

namespace graft {
namespace {

/// What follows "<parameter>." in the names of a parameter's state.
std::vector<std::string> kept_names(const TrainOptions& options) {
  std::vector<std::string> names;
  if (options.optimizer) names = state_names(*options.optimizer);
  if (options.accumulate > 1) names.emplace_back("accumulated");
  return names;
}

/// The parameter of which `name` is state; null if there is none. Of two whose names begin alike,
/// "w" and "w.mean", it is the longer.
const Value* parameter_of(const Graph& graph, const Trained& trained, const std::string& name) {
  const std::string* best = nullptr;
  for (const std::string& parameter : trained.parameters) {
    const bool begins = name.size() > parameter.size() && name.starts_with(parameter) &&
                        name[parameter.size()] == '.';
    if (begins && (best == nullptr || parameter.size() > best->size())) best = &parameter;
  }
  return best == nullptr ? nullptr : graph.find(*best);
}

/// The one of `kept` that a name ends in. A name that was taken has a number behind it.
std::string kind_of(const std::string& rest, const std::vector<std::string>& kept) {
  const auto at =
      std::ranges::find_if(kept, [&](const std::string& kind) { return rest.starts_with(kind); });
  return at == kept.end() ? "" : *at;
}

}  // namespace

std::map<std::string, Tensor> weights_of(const Graph& graph, const Trained& trained) {
  std::map<std::string, Tensor> weights;
  for (const Value* value : graph.initializers()) {
    const Tensor& tensor = value->initializer();
    const bool is_large = is_float(tensor.dtype()) && tensor.rank() > 0;
    if (is_large ||
        std::ranges::find(trained.parameters, value->name()) != trained.parameters.end())
      weights.emplace(value->name(), tensor);
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

void check_optimizer_state(const Graph& graph, const Trained& trained, const TrainOptions& options,
                           const TrainState& state) {
  const std::vector<std::string> kept = kept_names(options);
  std::set<std::string> found;
  for (const auto& [name, tensor] : state.optimizer) {
    const Value* const parameter = parameter_of(graph, trained, name);
    const std::string kind =
        parameter == nullptr ? "" : kind_of(name.substr(parameter->name().size() + 1), kept);
    if (kind.empty()) {
      fail(ErrorKind::argument, "the state holds '", name,
           "', which no parameter that trains here has: it is of other parameters or another "
           "optimizer");
    }
    if (tensor.shape() != parameter->initializer().shape()) {
      fail(ErrorKind::argument, "the state has '", name, "' as ", tensor, ", its parameter is ",
           parameter->initializer());
    }
    found.insert(kind);
  }
  if (state.updates < 0 || state.total_updates < 0) {
    fail(ErrorKind::argument, "the state has ", state.updates, " updates of ", state.total_updates);
  }
  for (const std::string& kind : kept) {
    if (state.updates == 0 || found.contains(kind)) continue;
    fail(ErrorKind::argument, "the state lacks what the optimizer keeps as '", kind,
         "': it is of another optimizer");
  }
}

}  // namespace graft
