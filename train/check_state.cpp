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

/// The weight of which `name` is state; null if there is none. Of two whose names begin alike, "w"
/// and "w.mean", it is the longer.
const Value* weight_of(const Graph& graph, const std::map<std::string, Tensor>& weights,
                       const std::string& name) {
  const std::string* best = nullptr;
  for (const auto& [weight, tensor] : weights) {
    const bool begins =
        name.size() > weight.size() && name.starts_with(weight) && name[weight.size()] == '.';
    if (begins && (best == nullptr || weight.size() > best->size())) best = &weight;
  }
  return best == nullptr ? nullptr : graph.find(*best);
}

/// What tensor `name` is to the weight: one of `kept`, the f32 master of one of 16 bits, or an
/// average; empty if none. A name that was taken has a number behind it.
std::string kind_of(const std::string& name, const Value& weight, bool trains,
                    const std::vector<std::string>& kept, const TrainOptions& options) {
  std::string_view rest = std::string_view(name).substr(weight.name().size() + 1);
  constexpr std::string_view kMaster = "master";
  constexpr std::string_view kAverage = "average";
  if (options.ema > 0.0F && rest.starts_with(kAverage)) return std::string(kAverage);
  const bool is_half = weight.dtype() == DType::f16 || weight.dtype() == DType::bf16;
  if (is_half && rest.starts_with(kMaster)) {
    const std::size_t dot = rest.find('.');
    if (dot == rest.npos) return std::string(kMaster);
    rest.remove_prefix(dot + 1);
  }
  if (!trains) return {};
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
  std::vector<std::string> kept = kept_names(options);
  const std::map<std::string, Tensor> weights = weights_of(graph, trained);
  std::set<std::string> found;
  for (const auto& [name, tensor] : state.optimizer) {
    const Value* const parameter = weight_of(graph, weights, name);
    const bool trains =
        parameter != nullptr &&
        std::ranges::find(trained.parameters, parameter->name()) != trained.parameters.end();
    const std::string kind =
        parameter == nullptr ? "" : kind_of(name, *parameter, trains, kept, options);
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
  if (options.ema > 0.0F) kept.emplace_back("average");
  for (const std::string& kind : kept) {
    if (state.updates == 0 || found.contains(kind)) continue;
    fail(ErrorKind::argument, "the state lacks what the optimizer keeps as '", kind,
         "': it is of another optimizer");
  }
}

}  // namespace graft
