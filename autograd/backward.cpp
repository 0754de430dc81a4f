// Reverse mode as a graph transform. `Flow` marks the values through which a wanted value reaches
// an output; `Engine` walks their nodes from the last to the first, asks each op's rule for the
// gradients of its inputs and sums what arrives at a value from all its readers. What every rule
// would have to repeat is done here once: summing over broadcast axes, casting, accumulating.
// Start by looking at `Engine::run`.
#include "autograd/backward.h"

#include <algorithm>
#include <numeric>

#include "core/base/at.h"
#include "core/base/pointer_map.h"
#include "core/graph/number_table.h"
#include "core/ops/builder.h"
#include "core/ops/registry.h"

namespace graft::autograd {
namespace {

/// The float values that depend on a wanted value and on which an output depends.
class Flow {
 public:
  Flow(const Graph& graph, const std::vector<const Value*>& outputs,
       const std::vector<const Value*>& wanted) {
    PointerSet<Value> downstream;
    for (const Value* value : wanted) downstream.try_emplace(value);
    for (const auto& node : graph.nodes()) {
      if (!reads_any(*node, downstream)) continue;
      for_each_output(*node, [&](const Value* output) {
        if (is_float(output->dtype())) downstream.try_emplace(output);
      });
    }
    for (const Value* output : outputs) {
      if (downstream.contains(output)) values_.try_emplace(output);
    }
    for (auto at = graph.nodes().rbegin(); at != graph.nodes().rend(); ++at) {
      const Node& node = **at;
      bool reaches = false;
      for_each_output(node, [&](const Value* output) { reaches |= values_.contains(output); });
      if (!reaches) continue;
      for_each_input(node, [&](const Value& input) {
        if (is_float(input.dtype()) && downstream.contains(&input)) values_.try_emplace(&input);
      });
    }
  }

  bool has(const Value* value) const { return values_.contains(value); }

  /// Whether gradients must pass through the node.
  bool crosses(const Node& node) const {
    bool reaches = false;
    for_each_output(node, [&](const Value* output) { reaches |= has(output); });
    return reaches && reads_any(node, values_);
  }

 private:
  /// The node's inputs, and what its bodies read from outside.
  template <class Visit>
  static void for_each_input(const Node& node, const Visit& visit) {
    for (const Value* input : node.inputs()) {
      if (input != nullptr) visit(*input);
    }
    for_each_body(node, [&](const Graph& body) {
      for (const auto& inner : body.nodes()) for_each_input(*inner, visit);
    });
  }

  static bool reads_any(const Node& node, const PointerSet<Value>& values) {
    bool found = false;
    for_each_input(node, [&](const Value& input) { found = found || values.contains(&input); });
    return found;
  }

  template <class Visit>
  static void for_each_output(const Node& node, Visit&& visit) {
    for (int i = 0; i < node.output_count(); ++i) {
      if (node.output(i) != nullptr) visit(node.output(i));
    }
  }

  PointerSet<Value> values_;
};

/// Why gradients cannot pass through the node; empty when they can.
std::string refusal(const Node& node) {
  const OpDef* const def = OpRegistry::instance().find(node);
  if (def == nullptr) return "the op is not known to Graft";
  if (def->backward.refusal() != nullptr) return std::string(def->backward.refusal()->why);
  return {};
}

std::vector<std::string> refusals(const Graph& graph, const Flow& flow) {
  std::vector<std::string> lines;
  for (const auto& node : graph.nodes()) {
    const std::string why = flow.crosses(*node) ? refusal(*node) : std::string();
    if (!why.empty()) lines.push_back(node->label() + ": " + why);
  }
  return lines;
}

class Engine {
 public:
  Engine(Graph& graph, const Flow& flow)
      : flow_(flow), builder_(graph, nullptr, "grad/"), last_arrived_(graph, kNone) {}

  void seed(const Seed& seed) {
    const Expr output = builder_.expr(seed.output);
    add(seed.output, seed.gradient != nullptr ? builder_.expr(seed.gradient)
                                              : expand(constant_like(output, 1.0), output.shape()));
  }

  void run() {
    std::vector<Node*> nodes;  // as they stand before gradients are added behind them
    for (const auto& node : builder_.graph().nodes()) nodes.push_back(node.get());
    for (auto at = nodes.rbegin(); at != nodes.rend(); ++at) {
      if (flow_.crosses(**at)) differentiate(**at);
    }
  }

  /// Empty when nothing flows into the value.
  Expr gradient_of(const Value* value) {
    if (value == nullptr || last_arrived_[*value] == kNone) return {};
    Arrived& last = at(arrived_, last_arrived_[*value]);
    if (last.before != kNone) last = {sum_of(last), kNone};
    return last.gradient;
  }

 private:
  void differentiate(const Node& node) {
    std::vector<Expr> output_gradients;
    bool any = false;
    for (int i = 0; i < node.output_count(); ++i) {
      output_gradients.push_back(gradient_of(node.output(i)));
      any |= static_cast<bool>(output_gradients.back());
    }
    if (!any) return;
    std::vector<bool> needed;
    for (const Value* input : node.inputs()) needed.push_back(flow_.has(input));
    const Rule* const rule = OpRegistry::instance().get(node).backward.rule();
    if (rule == nullptr) {
      fail(ErrorKind::argument, node.label(), " must be decomposed before differentiation");
    }
    const std::vector<Expr> gradients =
        (*rule)(Gradient(node, builder_, std::move(output_gradients), needed));
    for (std::size_t i = 0; i < std::min(gradients.size(), needed.size()); ++i) {
      if (needed[i] && gradients[i]) add(node.inputs()[i], gradients[i]);
    }
  }

  void add(const Value* value, const Expr& gradient) {
    int& last = last_arrived_[*value];
    arrived_.push_back({sum_to(cast(gradient, value->dtype()), value->known_shape()), last});
    last = static_cast<int>(arrived_.size()) - 1;
  }

  /// A gradient from one reader of a value, and where the one that arrived there before stands.
  struct Arrived {
    Expr gradient;
    int before;
  };
  static constexpr int kNone = -1;

  /// In the order in which they arrived.
  Expr sum_of(const Arrived& last) const {
    std::vector<Expr> all{last.gradient};
    for (int i = last.before; i != kNone; i = at(arrived_, i).before) {
      all.push_back(at(arrived_, i).gradient);
    }
    return std::accumulate(std::next(all.rbegin()), all.rend(), all.back());
  }

  const Flow& flow_;
  Builder builder_;
  std::vector<Arrived> arrived_;  // of all values
  ValueTable<int> last_arrived_;
};

}  // namespace

std::vector<std::string> blockers(const Graph& graph, const std::vector<const Value*>& outputs,
                                  const std::vector<const Value*>& wanted) {
  return refusals(graph, Flow(graph, outputs, wanted));
}

std::vector<Value*> backward(Graph& graph, const std::vector<Seed>& seeds,
                             const std::vector<Value*>& wanted) {
  std::vector<const Value*> outputs;
  for (const Seed& seed : seeds) outputs.push_back(seed.output);
  const Flow flow(graph, outputs, {wanted.begin(), wanted.end()});
  const std::vector<std::string> blocked = refusals(graph, flow);
  if (!blocked.empty()) {
    std::string list;
    for (const std::string& line : blocked) list += "\n  " + line;
    fail(ErrorKind::unsupported, "gradients cannot pass through ", blocked.size(),
         blocked.size() == 1 ? " node:" : " nodes:", list);
  }

  Engine engine(graph, flow);
  for (const Seed& seed : seeds) {
    if (flow.has(seed.output)) engine.seed(seed);
  }
  engine.run();
  std::vector<Value*> gradients;
  for (const Value* value : wanted) gradients.push_back(engine.gradient_of(value).value());
  return gradients;
}

}  // namespace graft::autograd
