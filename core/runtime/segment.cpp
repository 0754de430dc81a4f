#include "core/runtime/segment.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "core/ops/kernel.h"
#include "core/ops/registry.h"
#include "core/passes/pass.h"
#include "core/runtime/inference.h"

namespace graft {
namespace {

/// A chain of segments costs time that grows with its square.
constexpr int kLongestChain = 2000;

/// Inputs whose elements a kernel may have to know when it is made: axes, shapes, counts.
bool may_be_asked_for(const Value& value) {
  return !value.is_initializer() && value.shape() && value.shape()->rank() <= 1 &&
         !is_float(value.dtype());
}

bool is_planned_type(const Value* value) {
  if (value == nullptr) return true;
  return value->dtype() != DType::undefined && bits_of(value->dtype()) > 0 &&
         !value->type().is_container && value->shape() && value->shape()->known();
}

/// Strings, sequences and the like.
bool is_unplannable(const Value* value) {
  return value != nullptr && (value->type().is_container || value->dtype() == DType::string);
}

bool has_body(const Node& node) {
  bool found = false;
  for_each_body(node, [&](const Graph&) { found = true; });
  return found;
}

template <class Test>
bool any_value(const Node& node, const Test& test) {
  for (int i = 0; i < node.output_count(); ++i) {
    if (test(node.output(i))) return true;
  }
  return std::ranges::any_of(node.inputs(), test);
}

bool must_be_called(const Node& node) {
  return OpRegistry::instance().get(node).is_dynamic || has_body(node) ||
         any_value(node, is_unplannable);
}

/// Whether a kernel can be made without knowing the elements of inputs.
bool has_kernel(const Node& node) {
  const auto asked_for = [](const Value* input) {
    return input != nullptr && may_be_asked_for(*input);
  };
  if (std::ranges::none_of(node.inputs(), asked_for)) return true;  // if not, planning says so
  const OpDef& def = OpRegistry::instance().get(node);
  if (std::ranges::any_of(def.aliases, [](const Alias& a) { return a.kind == AliasKind::view; })) {
    return true;
  }
  try {
    prepare_kernel(node, cpu());  // what other devices ask for, the CPU asks for too
    return true;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::unsupported) throw;
    return false;
  }
}

bool can_be_planned(const Node& node) {
  return !must_be_called(node) && std::ranges::all_of(node.inputs(), is_planned_type) &&
         !any_value(node, [](const Value* value) { return !is_planned_type(value); }) &&
         has_kernel(node);
}

/// All that the node and its bodies read of `graph`.
std::vector<Value*> reads_of(const Node& node, const Graph& graph) {
  std::vector<Value*> reads;
  for_each_read(node, [&](Value& value) {
    if (&value.graph() == &graph) reads.push_back(&value);
  });
  return reads;
}

using ValueSet = std::unordered_set<const Value*>;

void add_outputs(const Node& node, ValueSet& set) {
  for (int i = 0; i < node.output_count(); ++i) {
    if (node.output(i) != nullptr) set.insert(node.output(i));
  }
}

void remove_unneeded(Graph& graph) {
  passes::eliminate_dead(graph);
  for (Value* input : passes::required_inputs(graph)) {
    if (input->is_unused()) graph.remove_input(input);
  }
}

class SegmentBuilder {
 public:
  SegmentBuilder(const Stage& stage, const PlanOptions& options)
      : stage_(stage), options_(options) {}

  std::unique_ptr<Segment> run(std::span<const Datum> inputs) {
    bind(inputs);
    divide();
    segment_->slot_count = static_cast<int>(inputs.size());
    add_plan();
    add_calls();
    add_results();
    add_rest();
    return std::move(segment_);
  }

 private:
  Graph& graph() { return *segment_->graph; }

  void bind(std::span<const Datum> inputs) {
    std::vector<ValueType> types;
    for (const Datum& input : inputs) {
      if (input.is_tensor()) {
        const Tensor& tensor = input.tensor();
        types.push_back({tensor.dtype(), SymShape(tensor.shape())});
        segment_->types.push_back({true, tensor.dtype(), tensor.shape()});
      } else {
        types.push_back({.is_container = true});
        segment_->types.push_back({});
      }
    }
    segment_->graph = inference_graph(*stage_.graph, std::move(types), *options_.device);
    int slot = 0;
    for (const Value* input : passes::required_inputs(graph())) slot_of_[input] = slot++;
  }

  /// The first node that is neither planned nor called is in the rest, and so is all that reads it.
  void divide() {
    for (const auto& node : graph().nodes()) {
      const std::vector<Value*> reads = reads_of(*node, graph());
      const auto is_early = [&](const Value* v) {
        return v->producer() == nullptr || planned_.contains(v);
      };
      const bool early = std::ranges::all_of(reads, is_early);
      const bool known = std::ranges::all_of(
          reads, [&](const Value* v) { return is_early(v) || called_.contains(v); });
      if (early && can_be_planned(*node)) {
        add_outputs(*node, planned_);
      } else if (known && (early || must_be_called(*node))) {
        add_outputs(*node, called_);
        called_nodes_.push_back(node.get());
        needed_.insert(reads.begin(), reads.end());
      } else {
        needed_.insert(reads.begin(), reads.end());
      }
    }
    needed_.insert(graph().outputs().begin(), graph().outputs().end());
  }

  /// The outputs of nodes, in order, that are in `set` and needed outside the plan.
  std::vector<Value*> needed_of(const ValueSet& set) {
    std::vector<Value*> values;
    for (const auto& node : graph().nodes()) {
      for (int i = 0; i < node->output_count(); ++i) {
        Value* const output = node->output(i);
        if (output != nullptr && set.contains(output) && needed_.contains(output)) {
          values.push_back(output);
        }
      }
    }
    return values;
  }

  void add_plan() {
    const std::vector<Value*> outputs = needed_of(planned_);
    segment_->first_plan_output = segment_->slot_count;
    if (outputs.empty()) return;
    ValueMap twins;
    std::unique_ptr<Graph> plan = graph().clone(&twins);
    std::vector<Value*> twin_outputs;
    for (const Value* output : outputs) {
      slot_of_[output] = segment_->slot_count++;
      twin_outputs.push_back(twins.at(output));
    }
    plan->set_outputs(twin_outputs);
    remove_unneeded(*plan);
    for (const Value* input : passes::required_inputs(graph())) {
      if (plan->find(input->name()) != nullptr) {
        segment_->plan_inputs.push_back(slot_of_.at(input));
      }
    }
    segment_->plan.emplace(std::move(plan), options_);
  }

  int slot(const Value& value) {
    const auto [at, is_new] = slot_of_.try_emplace(&value, segment_->slot_count);
    if (is_new) {
      ++segment_->slot_count;
      segment_->constants.push_back({at->second, value.initializer()});
    }
    return at->second;
  }

  void add_calls() {
    for (const Value* output : needed_of(called_)) slot_of_[output] = segment_->slot_count++;
    for (const Node* node : called_nodes_) {
      Segment::Call call;
      call.call = make_call(*node);
      for (const Value* read : call.call.reads) {
        call.reads.push_back(read == nullptr ? -1 : slot(*read));
      }
      for (int i = 0; i < node->output_count(); ++i) {
        const auto at = slot_of_.find(node->output(i));
        call.writes.push_back(at == slot_of_.end() ? -1 : at->second);
      }
      segment_->calls.push_back(std::move(call));
    }
  }

  bool is_done(const Value& value) const {
    return value.producer() == nullptr || planned_.contains(&value) || called_.contains(&value);
  }

  void add_results() {
    for (std::size_t i = 0; i < graph().outputs().size(); ++i) {
      const Value& output = *graph().outputs()[i];
      if (!is_done(output)) continue;
      segment_->results.push_back({slot(output), stage_.places[i], output.producer() == nullptr});
    }
  }

  void add_rest() {
    auto rest = std::make_unique<Stage>();
    ValueMap twins;
    rest->graph = graph().clone(&twins);
    rest->depth = stage_.depth + 1;
    std::vector<Value*> outputs;
    for (std::size_t i = 0; i < graph().outputs().size(); ++i) {
      const Value* const output = graph().outputs()[i];
      if (is_done(*output)) continue;
      outputs.push_back(twins.at(output));
      rest->places.push_back(stage_.places[i]);
    }
    if (outputs.empty()) return;
    if (rest->depth > kLongestChain) {
      fail(ErrorKind::unsupported, "shapes depend on data more than ", kLongestChain,
           " times one after the other");
    }
    rest->graph->set_outputs(outputs);
    connect_rest(*rest->graph, twins);
    segment_->rest = std::move(rest);
  }

  /// Lets what is done come in by inputs.
  void connect_rest(Graph& rest, const ValueMap& twins) {
    std::unordered_map<const Value*, const Value*> source;  // of an input
    for (const Value* input : passes::required_inputs(graph())) source[twins.at(input)] = input;
    for (const ValueSet* const set : {&planned_, &called_}) {
      for (const Value* value : needed_of(*set)) {
        Value* const twin = twins.at(value);
        Value* const input = rest.add_input(rest.unique_name(value->name()), {});
        rest.replace_all_uses(twin, input);
        source[input] = value;
      }
    }
    remove_unneeded(rest);
    for (Value* input : passes::required_inputs(rest)) {
      const Value& value = *source.at(input);
      segment_->rest_inputs.push_back(slot_of_.at(&value));
      if (rest.find_in_scope(value.name()) == nullptr) rest.rename(input, value.name());
    }
  }

  const Stage& stage_;
  const PlanOptions& options_;
  std::unique_ptr<Segment> segment_ = std::make_unique<Segment>();
  std::unordered_map<const Value*, int> slot_of_;
  ValueSet planned_;
  ValueSet called_;
  std::vector<const Node*> called_nodes_;
  ValueSet needed_;  // outside the plan
};

}  // namespace

const Node* first_unplanned(const Graph& graph) {
  const auto at = std::ranges::find_if_not(graph.nodes(),
                                           [](const auto& node) { return can_be_planned(*node); });
  return at == graph.nodes().end() ? nullptr : at->get();
}

bool DatumType::fits(const Datum& datum) const {
  if (!datum.is_tensor()) return !is_tensor;
  return is_tensor && datum.tensor().dtype() == dtype && datum.tensor().shape() == shape;
}

bool Segment::accepts(std::span<const Datum> inputs) const {
  return std::ranges::equal(
      inputs, types, [](const Datum& datum, const DatumType& type) { return type.fits(datum); });
}

std::vector<Datum> Segment::run(std::span<const Datum> inputs) {
  std::vector<Datum> slots(inputs.begin(), inputs.end());
  slots.resize(static_cast<std::size_t>(slot_count));
  const auto at = [&](int slot) -> Datum& { return slots[static_cast<std::size_t>(slot)]; };
  for (const Constant& constant : constants) at(constant.slot) = constant.tensor.to(cpu());
  if (plan) {
    std::vector<Tensor> tensors;
    for (const int slot : plan_inputs) tensors.push_back(at(slot).tensor());
    plan->run(tensors);
    for (int i = 0; i < plan->output_count(); ++i) {
      // Copied even on the CPU: the plan's memory is overwritten by its next run.
      const Tensor& output = plan->output(i);
      at(first_plan_output + i) = &output.device() == &cpu() ? output.clone() : output.to(cpu());
    }
  }
  for (Call& one : calls) {
    std::vector<Datum> arguments;
    for (const int slot : one.reads) arguments.push_back(slot < 0 ? Datum() : at(slot));
    std::vector<Datum> results_of_call = one.call.run(arguments);
    for (std::size_t i = 0; i < std::min(results_of_call.size(), one.writes.size()); ++i) {
      if (one.writes[i] >= 0) at(one.writes[i]) = std::move(results_of_call[i]);
    }
  }
  return slots;
}

std::unique_ptr<Segment> build_segment(const Stage& stage, std::span<const Datum> inputs,
                                       const PlanOptions& options) {
  return SegmentBuilder(stage, options).run(inputs);
}

}  // namespace graft
