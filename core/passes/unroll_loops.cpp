#include <algorithm>

#include "core/base/limits.h"
#include "core/ops/builder.h"
#include "core/ops/infer.h"
#include "core/passes/pass.h"
#include "core/passes/splice_internal.h"

namespace graft::passes {
namespace {

const Graph* body_of(const Node& node) {
  const Attribute* const body = node.attributes.find("body");
  const auto* const graph =
      body == nullptr ? nullptr : std::get_if<std::shared_ptr<Graph>>(&body->value);
  return graph == nullptr ? nullptr : graph->get();
}

/// Longer loops are better run; a file of a few bytes may ask for any number of turns.
bool is_small(const Node& node, const Graph& body, std::int64_t turns) {
  const std::int64_t room =
      limits().unrolled_nodes - static_cast<std::int64_t>(node.graph().node_count());
  const auto count = static_cast<std::int64_t>(count_nodes(body));
  return turns >= 0 && turns <= std::max<std::int64_t>(room, 0) / (count + 1);
}

bool is_true(const Value* value) {
  const Tensor tensor = constant_of(value);
  return tensor.dtype() == DType::boolean && tensor.size() == 1 && tensor.values<const bool>()[0];
}

/// Whether the body hands on its condition, or gives a constant that is true.
bool stays_true(const Graph& body) {
  const Value* condition = body.outputs()[0];
  while (condition->producer() != nullptr &&
         (condition->producer()->is("Identity") || condition->producer()->is("Cast"))) {
    condition = condition->producer()->input(0);
  }
  return condition == body.inputs()[1] || is_true(condition);
}

std::int64_t entry(const std::vector<std::int64_t>& list, std::size_t index) {
  return index < list.size() ? list[index] : 0;
}

/// Copies of a body before the loop's node, and what they give.
class Unroller {
 public:
  Unroller(Node& node, const Graph& body, std::size_t state_count)
      : node_(node),
        body_(body),
        builder_(node.graph(), &node),
        prefix_((node.name().empty() ? "turn" : node.name()) + "_"),
        collected_(body.outputs().size() - state_count) {}

  Builder& builder() { return builder_; }
  std::vector<Value*> state;

  /// Runs the body on `arguments`; its first outputs become the state, the others are collected.
  void turn(const std::vector<Value*>& arguments) {
    std::vector<Value*> results =
        splice(body_, node_.graph(), &node_, arguments, prefix_ + std::to_string(count_++) + "/");
    const auto split = results.end() - static_cast<std::ptrdiff_t>(collected_.size());
    for (std::size_t i = 0; i < collected_.size(); ++i) {
      collected_[i].push_back(*(split + static_cast<std::ptrdiff_t>(i)));
    }
    state.assign(results.begin(), split);
  }

  /// The entries of collected output `index`, joined along a new axis.
  Value* stacked(std::size_t index, std::int64_t axis, bool reverse) {
    std::vector<Value*> entries = collected_[index];
    if (reverse) std::ranges::reverse(entries);
    for (Value*& one : entries) {
      Value* const axes = constant_ints(builder_, {axis}).value();
      one = builder_.node("Unsqueeze", "", {one, axes}, 1)->output();
    }
    return builder_.node("Concat", "", entries, 1, {{"axis", axis}})->output();
  }
  std::size_t collected_count() const { return collected_.size(); }

 private:
  Node& node_;
  const Graph& body_;
  Builder builder_;
  std::string prefix_;
  std::vector<std::vector<Value*>> collected_;
  int count_ = 0;
};

/// The trip count of a Loop that ends by it alone; -1 otherwise.
std::int64_t turns_of_loop(const Node& node, const Graph& body) {
  const Tensor most = constant_of(node.input(0));
  const auto carried = static_cast<std::size_t>(std::max(node.input_count() - 2, 0));
  const bool is_sound = body.inputs().size() == carried + 2 && body.outputs().size() > carried;
  if (!is_sound || most.dtype() != DType::i64 || most.size() != 1) return -1;
  if (node.input(1) != nullptr && !is_true(node.input(1))) return -1;
  if (!stays_true(body)) return -1;
  const std::int64_t turns = std::max<std::int64_t>(to_int64(most).front(), 0);
  const bool collects = body.outputs().size() > carried + 1;
  return turns == 0 && collects ? -1 : turns;
}

bool unroll_loop(Node& node) {
  const Graph* const body = body_of(node);
  if (body == nullptr) return false;
  const std::int64_t turns = turns_of_loop(node, *body);
  if (!is_small(node, *body, turns)) return false;
  const std::span<Value* const> inputs = node.inputs();
  Unroller unroller(node, *body, inputs.size() - 1);
  Value* const yes = unroller.builder().constant(Tensor::scalar(true));
  unroller.state = {yes};
  unroller.state.insert(unroller.state.end(), inputs.begin() + 2, inputs.end());
  for (std::int64_t turn = 0; turn < turns; ++turn) {
    std::vector<Value*> arguments{unroller.builder().constant(Tensor::scalar(turn))};
    arguments.insert(arguments.end(), unroller.state.begin(), unroller.state.end());
    arguments[1] = yes;
    unroller.turn(arguments);
  }
  std::vector<Value*> results(unroller.state.begin() + 1, unroller.state.end());
  for (std::size_t i = 0; i < unroller.collected_count(); ++i) {
    results.push_back(unroller.stacked(i, 0, false));
  }
  replace_node(node, results);
  return true;
}

/// The known length of what a Scan runs over; -1 when it is not known or not sound.
std::int64_t turns_of_scan(const Node& node, const Graph& body, std::size_t scanned) {
  const std::size_t states = node.inputs().size() - scanned;
  if (body.inputs().size() != node.inputs().size() || body.outputs().size() < states) return -1;
  const std::vector<std::int64_t> axes = node.attributes.get_ints("scan_input_axes");
  std::int64_t turns = -1;
  for (std::size_t i = 0; i < scanned; ++i) {
    const Value* const input = node.inputs()[states + i];
    if (input == nullptr || !input->shape()) return -1;
    const SymShape& shape = *input->shape();
    const Dim dim = shape[normalize_axis(entry(axes, i), shape.rank(), node.label())];
    if (!dim.is_known() || (turns >= 0 && turns != dim.value())) return -1;
    turns = dim.value();
  }
  const bool collects = body.outputs().size() > states;
  return turns == 0 && collects ? -1 : turns;
}

bool unroll_scan(Node& node) {
  const Graph* const body = body_of(node);
  const std::int64_t scan_count = node.attributes.get_int("num_scan_inputs", 0);
  if (body == nullptr || scan_count < 1 || scan_count > node.input_count()) return false;
  const auto scanned = static_cast<std::size_t>(scan_count);
  const std::int64_t turns = turns_of_scan(node, *body, scanned);
  if (!is_small(node, *body, turns)) return false;
  const std::vector<std::int64_t> axes = node.attributes.get_ints("scan_input_axes");
  const std::vector<std::int64_t> reversed = node.attributes.get_ints("scan_input_directions");
  const std::size_t states = node.inputs().size() - scanned;
  Unroller unroller(node, *body, states);
  unroller.state.assign(node.inputs().begin(), node.inputs().end() - scan_count);
  for (std::int64_t turn = 0; turn < turns; ++turn) {
    std::vector<Value*> arguments = unroller.state;
    for (std::size_t i = 0; i < scanned; ++i) {
      const std::int64_t at = entry(reversed, i) != 0 ? turns - 1 - turn : turn;
      Value* const index = unroller.builder().constant(Tensor::scalar(at));
      arguments.push_back(
          unroller.builder()
              .node("Gather", "", {node.inputs()[states + i], index}, 1, {{"axis", entry(axes, i)}})
              ->output());
    }
    unroller.turn(arguments);
  }
  std::vector<Value*> results = unroller.state;
  const std::vector<std::int64_t> out_axes = node.attributes.get_ints("scan_output_axes");
  const std::vector<std::int64_t> directions = node.attributes.get_ints("scan_output_directions");
  for (std::size_t i = 0; i < unroller.collected_count(); ++i) {
    results.push_back(unroller.stacked(i, entry(out_axes, i), entry(directions, i) != 0));
  }
  replace_node(node, results);
  return true;
}

}  // namespace

bool unroll_loops(Graph& graph) {
  bool changed = false;
  for (auto next = graph.nodes().begin(); next != graph.nodes().end();) {
    Node& node = **next++;  // which may go
    if (node.is("Loop")) {
      changed |= unroll_loop(node);
    } else if (node.is("Scan")) {
      changed |= unroll_scan(node);
    }
  }
  return changed;
}

}  // namespace graft::passes
