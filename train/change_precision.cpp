#include "train/change_precision.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>

#include "core/layers/output_types.h"
#include "core/ops/registry.h"
#include "io/op_types.h"

namespace graft::edit {
namespace {

constexpr float kMostHalf = 65504.0F;
constexpr float kLeastHalf = 0x1p-24F;
constexpr float kMostBFloat16 = 0x1.fep127F;

/// Walks through the nodes in order: each reads what is narrow already where it may, and what it
/// gives is narrow where it may, with a cast for those that still read f32.
class Narrower {
 public:
  Narrower(Model& model, DType type)
      : graph_(model.graph()), type_(type), opset_(model.opset()), types_(value_types(model)) {}

  PrecisionReport run() {
    std::vector<Node*> nodes;
    for (const auto& node : graph_.nodes()) nodes.push_back(node.get());
    for (Node* node : nodes) visit(*node);
    store_weights();
    settle_outputs();
    return std::move(report_);
  }

 private:
  bool is_wide(const Value* value) const {
    if (value == nullptr || value->type().is_container) return false;
    const auto known = types_.find(value->name());
    return (known == types_.end() ? value->dtype() : known->second.dtype) == DType::f32;
  }

  bool reads_or_gives_wide(const Node& node) const {
    for (int i = 0; i < node.output_count(); ++i) {
      if (is_wide(node.output(i))) return true;
    }
    return std::ranges::any_of(node.inputs(), [&](const Value* value) { return is_wide(value); });
  }

  /// Why the node stays as it is; empty where it need not.
  std::string obstacle(const Node& node) const {
    bool has_body = false;
    for_each_body(node, [&](const Graph& /*body*/) { has_body = true; });
    if (has_body) return "its bodies compute in f32";
    if (!node.domain().empty()) return "an op of '" + node.domain() + "'";
    for (const char* chosen : {"dtype", "output_dtype", "output_datatype"}) {
      if (node.attributes.has(chosen)) return text("its attribute '", chosen, "' says so");
    }
    if (takes_any(node, opset_)) return {};
    for (std::int64_t newer = opset_ + 1; newer <= kNewestOpset; ++newer) {
      if (takes_any(node, newer)) {
        return text("opset ", opset_, " has no form in ", type_, ", opset ", newer, " has");
      }
    }
    return text("ONNX has no form in ", type_);
  }

  bool takes_any(const Node& node, std::int64_t opset) const {
    const auto slots = onnx::slots_that_take(node, opset, type_);
    if (!slots) return false;
    for (int i = 0; i < node.input_count(); ++i) {
      if (is_wide(node.input(i)) && slots->inputs[static_cast<std::size_t>(i)]) return true;
    }
    for (int i = 0; i < node.output_count(); ++i) {
      if (is_wide(node.output(i)) && slots->outputs[static_cast<std::size_t>(i)]) return true;
    }
    return false;
  }

  void visit(Node& node) {
    if (!reads_or_gives_wide(node)) return;
    if (const std::string why = obstacle(node); !why.empty()) {
      report_.stay.push_back(node.label() + ": " + why);
      return;
    }
    const onnx::SlotTypes slots = *onnx::slots_that_take(node, opset_, type_);
    change_attributes(node);
    for (int i = 0; i < node.input_count(); ++i) {
      if (is_wide(node.input(i)) && slots.inputs[static_cast<std::size_t>(i)]) read(node, i);
    }
    for (int i = 0; i < node.output_count(); ++i) {
      if (is_wide(node.output(i)) && slots.outputs[static_cast<std::size_t>(i)]) give(node, i);
    }
  }

  void change_attributes(Node& node) {
    if (node.is("Cast") && is_wide(node.output())) {
      node.attributes.set({"to", static_cast<int>(type_)});
    }
    if (!node.is("Constant") && !node.is("ConstantOfShape")) return;
    Tensor value = node.attributes.get_tensor("value");
    if (node.attributes.has("value_float")) {
      value = Tensor::scalar(node.attributes.get_float("value_float", 0.0F));
    } else if (node.attributes.has("value_floats")) {
      const std::vector<float> all = node.attributes.get_floats("value_floats");
      value = Tensor::from(Shape{static_cast<std::int64_t>(all.size())}, all);
    } else if (!value.defined()) {
      value = Tensor::zeros(DType::f32, {1});  // what a ConstantOfShape repeats by default
    }
    node.attributes.erase("value_float");
    node.attributes.erase("value_floats");
    node.attributes.set({"value", narrowed(value)});
  }

  Tensor narrowed(const Tensor& wide) {
    const auto given = wide.to(cpu()).values<const float>();
    std::vector<float> numbers(given.begin(), given.end());
    const float most = type_ == DType::f16 ? kMostHalf : kMostBFloat16;
    for (float& number : numbers) {
      if (std::isfinite(number) && std::abs(number) > most) {
        number = std::copysign(most, number);
        ++report_.clamped;
      }
    }
    const bool is_lost =
        numbers.size() == 1 && numbers[0] != 0 && std::abs(numbers[0]) < kLeastHalf;
    if (is_lost && type_ == DType::f16) numbers[0] = std::copysign(kLeastHalf, numbers[0]);
    return Tensor::from(wide.shape(), numbers).cast(type_);
  }

  Value* cast(Value* from, DType to, Node* before) {
    const std::string name = graph_.unique_name(text(from->name(), "_", to));
    Value* const result =
        graph_.add_node("Cast", "", {from}, {name}, {{"to", static_cast<int>(to)}}, before)
            ->output();
    result->set_type({.dtype = to, .shape = from->shape()});
    result->producer()->set_name(name);
    return result;
  }

  void read(Node& node, int index) {
    Value* const wide = node.input(index);
    if (wide->is_initializer() && !wide->is_graph_input()) {
      readers_[wide].push_back({&node, index});
      if (readers_[wide].size() == 1) weights_.push_back(wide);
      return;
    }
    Value*& narrow = narrow_[wide];
    if (narrow == nullptr) narrow = cast(wide, type_, &node);
    node.set_input(index, narrow);
  }

  /// What reads the output by its old type, bodies and graph outputs too, reads a cast of it.
  void give(Node& node, int index) {
    Value* const output = node.output(index);
    Value* const wide = cast(output, DType::f32, graph_.next(&node));
    graph_.replace_all_uses(output, wide);
    wide->producer()->set_input(0, output);
    output->set_type({.dtype = type_, .shape = output->shape()});
    types_[wide->name()] = wide->type();
    narrow_[wide] = output;
    wides_.push_back(wide);
  }

  /// A weight that nothing reads as f32 any more takes the type; another one is cast.
  void store_weights() {
    for (Value* wide : weights_) {
      const std::vector<Use>& readers = readers_.at(wide);
      const bool is_only = wide->uses().size() == readers.size() && !wide->is_graph_output();
      Value* narrow = nullptr;
      if (is_only) {
        narrow = graph_.add_initializer("", narrowed(wide->initializer()));
        narrow->role = wide->role;
        graph_.preserve(narrow) = graph_.preserved_of(wide);
        ++report_.weights;
      } else {
        narrow = cast(wide, type_, graph_.nodes().front().get());
      }
      for (const Use& use : readers) use.node->set_input(use.index, narrow);
      if (!is_only) continue;
      const std::string name = wide->name();
      graph_.remove_initializer(wide);
      graph_.rename(narrow, name);
    }
  }

  /// Outputs keep their names; casts that nothing reads go.
  void settle_outputs() {
    for (Value* wide : wides_) {
      if (wide->is_unused()) {
        graph_.remove(wide->producer());
      } else if (wide->is_graph_output()) {
        Value* const narrow = narrow_.at(wide);
        const std::string name = narrow->name();
        graph_.rename(narrow, graph_.unique_name(text(name, "_", type_)));
        graph_.rename(wide, name);
      }
    }
  }

  Graph& graph_;
  DType type_;
  std::int64_t opset_;
  std::map<std::string, ValueType> types_;
  std::unordered_map<const Value*, Value*> narrow_;  // a cast of an f32 value, or what that casts
  std::vector<Value*> wides_;
  std::vector<Value*> weights_;
  std::unordered_map<const Value*, std::vector<Use>> readers_;
  PrecisionReport report_;
};

}  // namespace

PrecisionReport change_precision(Model& model, DType type) {
  if (type != DType::f16 && type != DType::bf16) {
    fail(ErrorKind::argument, "precision ", type, ": wanted f16 or bf16");
  }
  Model copy = model.clone();
  PrecisionReport report = Narrower(copy, type).run();
  if (report.weights == 0) {
    fail(ErrorKind::argument, "precision ", type, ": no f32 weight can have it",
         report.stay.empty() ? "" : "; " + report.stay.front());
  }
  return Narrower(model, type).run();  // what throws, throws for the copy
}

}  // namespace graft::edit
