// If, Loop, Scan and SequenceMap, as the ONNX operator pages describe them: each body is a program,
// which keeps a plan for the shapes that come, so that the turns of a loop share one.
#include <algorithm>
#include <limits>
#include <numeric>

#include "core/runtime/body.h"
#include "core/runtime/node_call.h"
#include "core/tensor/slices.h"

namespace graft {
namespace {

using Data = std::vector<Datum>;
using DataSpan = std::span<const Datum>;

std::shared_ptr<Body> make_body(const Node& node, std::string_view attribute) {
  const Attribute* const found = node.attributes.find(attribute);
  const auto* const graph =
      found == nullptr ? nullptr : std::get_if<std::shared_ptr<Graph>>(&found->value);
  if (graph == nullptr) fail(ErrorKind::model, node.label(), ": has no graph '", attribute, "'");
  return std::make_shared<Body>(**graph);
}

bool truth(const Node& node, const Datum& datum) {
  const Tensor& tensor = datum.tensor();
  if (tensor.size() != 1) {
    fail(ErrorKind::shape, node.label(), ": the condition is ", tensor, ", wanted one element");
  }
  return tensor.values<const bool>()[0];
}

void check_counts(const Node& node, const Body& body, std::size_t arguments, int least_outputs) {
  if (body.argument_count() != static_cast<int>(arguments) || body.output_count() < least_outputs) {
    fail(ErrorKind::model, node.label(), ": its body has ", body.argument_count(), " inputs and ",
         body.output_count(), " outputs, wanted ", arguments, " and at least ", least_outputs);
  }
}

/// What a loop collects for one output, an entry a turn.
class Collected {
 public:
  Collected(const Node& node, ValueType type, std::int64_t axis, bool reverse)
      : node_(node), type_(std::move(type)), axis_(axis), reverse_(reverse) {}

  void add(const Datum& datum) { entries_.push_back(datum.tensor()); }

  Tensor stacked() {
    if (entries_.empty()) return nothing();
    if (reverse_) std::ranges::reverse(entries_);
    const int rank = entries_.front().rank() + 1;
    return stack(entries_, normalize_axis(axis_, rank, node_.label()));
  }

 private:
  /// After no turn at all the shape is that of the body's output as far as it is known.
  Tensor nothing() const {
    if (type_.dtype == DType::undefined || !type_.shape) {
      fail(ErrorKind::unsupported, node_.label(), ": made no turn, and the body does not declare ",
           "the type of what it collects");
    }
    std::vector<std::int64_t> dims;
    for (const Dim& dim : *type_.shape) dims.push_back(dim.is_known() ? dim.value() : 0);
    const int axis = normalize_axis(axis_, static_cast<int>(dims.size()) + 1, node_.label());
    dims.insert(dims.begin() + axis, 0);
    if (type_.dtype == DType::string) return Tensor::from_strings(Shape(dims), {});
    return Tensor::empty(type_.dtype, Shape(dims));
  }

  const Node& node_;
  ValueType type_;
  std::int64_t axis_;
  bool reverse_;
  std::vector<Tensor> entries_;
};

NodeCall make_if(const Node& node) {
  const auto chosen = make_body(node, "then_branch");
  const auto other = make_body(node, "else_branch");
  check_counts(node, *chosen, 0, node.output_count());
  check_counts(node, *other, 0, node.output_count());
  NodeCall call;
  call.reads = {node.input(0)};
  for (const auto& body : {chosen, other}) {
    call.reads.insert(call.reads.end(), body->captures().begin(), body->captures().end());
  }
  call.run = [&node, chosen, other](DataSpan inputs) {
    const std::size_t split = 1 + chosen->captures().size();
    return truth(node, inputs[0]) ? chosen->run(inputs.subspan(1, split - 1))
                                  : other->run(inputs.subspan(split));
  };
  return call;
}

std::int64_t trip_count(const Node& node, const Datum& datum) {
  if (datum.is_nothing()) return std::numeric_limits<std::int64_t>::max();
  const Tensor& tensor = datum.tensor();
  if (tensor.size() != 1) {
    fail(ErrorKind::shape, node.label(), ": the trip count is ", tensor, ", wanted one element");
  }
  return to_int64(tensor).front();
}

Data run_loop(const Node& node, Body& body, DataSpan inputs) {
  const std::int64_t most = trip_count(node, inputs[0]);
  if (inputs[0].is_nothing() && inputs[1].is_nothing()) {
    fail(ErrorKind::unsupported, node.label(), ": has neither a trip count nor a condition");
  }
  const auto node_inputs = static_cast<std::size_t>(std::max(node.input_count(), 2));
  const DataSpan captures = inputs.subspan(node_inputs);
  const std::size_t carried_count = node_inputs - 2;
  Data state(inputs.begin() + 1, inputs.begin() + static_cast<std::ptrdiff_t>(node_inputs));
  if (state[0].is_nothing()) state[0] = Tensor::scalar(true);
  std::vector<Collected> collected;
  for (int i = static_cast<int>(carried_count) + 1; i < body.output_count(); ++i) {
    collected.emplace_back(node, body.output_type(i), 0, false);
  }
  for (std::int64_t turn = 0; turn < most && truth(node, state[0]); ++turn) {
    Data arguments{Tensor::scalar(turn)};
    arguments.insert(arguments.end(), state.begin(), state.end());
    arguments.insert(arguments.end(), captures.begin(), captures.end());
    Data outputs = body.run(arguments);
    std::move(outputs.begin(), outputs.begin() + static_cast<std::ptrdiff_t>(state.size()),
              state.begin());
    for (std::size_t i = 0; i < collected.size(); ++i) collected[i].add(outputs[state.size() + i]);
  }
  Data results(state.begin() + 1, state.end());
  for (Collected& one : collected) results.emplace_back(one.stacked());
  return results;
}

NodeCall make_loop(const Node& node) {
  const auto body = make_body(node, "body");
  NodeCall call;
  call.reads.assign(node.inputs().begin(), node.inputs().end());
  call.reads.resize(std::max<std::size_t>(call.reads.size(), 2));
  const int carried = static_cast<int>(call.reads.size()) - 2;
  check_counts(node, *body, call.reads.size(), 1 + std::max(carried, node.output_count()));
  call.reads.insert(call.reads.end(), body->captures().begin(), body->captures().end());
  call.run = [&node, body](DataSpan inputs) { return run_loop(node, *body, inputs); };
  return call;
}

/// Lists of axes and directions may be left out: 0 is the default of both.
std::int64_t entry(const std::vector<std::int64_t>& list, std::size_t index) {
  return index < list.size() ? list[index] : 0;
}

/// Number of turns: all scanned inputs must agree.
std::int64_t turns_of(const Node& node, DataSpan scanned, const std::vector<std::int64_t>& axes) {
  std::int64_t turns = -1;
  for (std::size_t i = 0; i < scanned.size(); ++i) {
    const Tensor& tensor = scanned[i].tensor();
    const int axis = normalize_axis(entry(axes, i), tensor.rank(), node.label());
    check_entries(tensor, axis);
    const std::int64_t dim = tensor.shape()[axis];
    if (turns >= 0 && dim != turns) {
      fail(ErrorKind::shape, node.label(), ": scanned inputs have ", turns, " and ", dim,
           " entries");
    }
    turns = dim;
  }
  return turns;
}

Data run_scan(const Node& node, Body& body, DataSpan inputs, std::size_t scan_count) {
  const auto node_inputs = static_cast<std::size_t>(node.input_count());
  const std::size_t state_count = node_inputs - scan_count;
  const DataSpan scanned = inputs.subspan(state_count, scan_count);
  const DataSpan captures = inputs.subspan(node_inputs);
  const std::vector<std::int64_t> axes = node.attributes.get_ints("scan_input_axes");
  const std::vector<std::int64_t> reversed = node.attributes.get_ints("scan_input_directions");
  const std::vector<std::int64_t> out_axes = node.attributes.get_ints("scan_output_axes");
  const std::vector<std::int64_t> out_reversed = node.attributes.get_ints("scan_output_directions");
  std::vector<Collected> collected;
  for (int i = static_cast<int>(state_count); i < body.output_count(); ++i) {
    const std::size_t index = collected.size();
    collected.emplace_back(node, body.output_type(i), entry(out_axes, index),
                           entry(out_reversed, index) != 0);
  }
  Data state(inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(state_count));
  const std::int64_t turns = turns_of(node, scanned, axes);
  for (std::int64_t turn = 0; turn < turns; ++turn) {
    Data arguments = state;
    for (std::size_t i = 0; i < scan_count; ++i) {
      const Tensor& tensor = scanned[i].tensor();
      const int axis = normalize_axis(entry(axes, i), tensor.rank(), node.label());
      arguments.emplace_back(
          select(tensor, axis, entry(reversed, i) != 0 ? turns - 1 - turn : turn));
    }
    arguments.insert(arguments.end(), captures.begin(), captures.end());
    Data outputs = body.run(arguments);
    std::move(outputs.begin(), outputs.begin() + static_cast<std::ptrdiff_t>(state_count),
              state.begin());
    for (std::size_t i = 0; i < collected.size(); ++i) collected[i].add(outputs[state_count + i]);
  }
  for (Collected& one : collected) state.emplace_back(one.stacked());
  return state;
}

NodeCall make_scan(const Node& node) {
  const auto body = make_body(node, "body");
  const std::int64_t scan_count = node.attributes.get_int("num_scan_inputs", 0);
  if (scan_count < 1 || scan_count > node.input_count()) {
    fail(ErrorKind::model, node.label(), ": num_scan_inputs is ", scan_count, " of ",
         node.input_count(), " inputs");
  }
  NodeCall call;
  call.reads.assign(node.inputs().begin(), node.inputs().end());
  const int states = node.input_count() - static_cast<int>(scan_count);
  check_counts(node, *body, call.reads.size(), std::max(states, node.output_count()));
  call.reads.insert(call.reads.end(), body->captures().begin(), body->captures().end());
  call.run = [&node, body, scan_count](DataSpan inputs) {
    return run_scan(node, *body, inputs, static_cast<std::size_t>(scan_count));
  };
  return call;
}

Data run_map(const Node& node, Body& body, DataSpan inputs) {
  const auto node_inputs = static_cast<std::size_t>(node.input_count());
  const std::size_t turns = inputs[0].sequence().items.size();
  std::vector<Sequence> results(static_cast<std::size_t>(body.output_count()));
  for (std::size_t i = 0; i < results.size(); ++i) {
    results[i].dtype = body.output_type(static_cast<int>(i)).dtype;
  }
  for (std::size_t turn = 0; turn < turns; ++turn) {
    Data arguments(inputs.begin(), inputs.end());
    for (std::size_t i = 0; i < node_inputs; ++i) {
      if (!inputs[i].is_sequence()) continue;
      const std::vector<Datum>& items = inputs[i].sequence().items;
      if (items.size() != turns) {
        fail(ErrorKind::shape, node.label(), ": sequences have ", turns, " and ", items.size(),
             " items");
      }
      arguments[i] = items[turn];
    }
    Data outputs = body.run(arguments);
    for (std::size_t i = 0; i < results.size(); ++i) {
      results[i].items.push_back(std::move(outputs[i]));
    }
  }
  return {std::make_move_iterator(results.begin()), std::make_move_iterator(results.end())};
}

NodeCall make_map(const Node& node) {
  const auto body = make_body(node, "body");
  NodeCall call;
  call.reads.assign(node.inputs().begin(), node.inputs().end());
  check_counts(node, *body, call.reads.size(), node.output_count());
  call.reads.insert(call.reads.end(), body->captures().begin(), body->captures().end());
  call.run = [&node, body](DataSpan inputs) { return run_map(node, *body, inputs); };
  return call;
}

}  // namespace

NodeCall make_control_call(const Node& node) {
  if (node.is("If")) return make_if(node);
  if (node.is("Loop")) return make_loop(node);
  if (node.is("Scan")) return make_scan(node);
  if (node.is("SequenceMap")) return make_map(node);
  fail(ErrorKind::unsupported, node.label(), ": Graft does not run bodies of this op");
}

}  // namespace graft
