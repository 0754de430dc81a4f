#include "core/layers/replace_head.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/closest.h"
#include "core/graph/edit.h"
#include "core/graph/find.h"
#include "core/graph/frozen.h"
#include "core/layers/init.h"
#include "core/layers/output_types.h"
#include "core/layers/retype.h"
#include "core/layers/weighted_layers.h"

namespace graft::edit {
namespace {

Value* find_output(const Graph& graph, const std::string& name) {
  std::vector<std::string> names;
  for (Value* output : graph.outputs()) {
    if (output->name() == name || (name.empty() && graph.outputs().size() == 1)) return output;
    names.push_back(output->name());
  }
  fail(ErrorKind::argument, "replace head: ",
       name.empty() ? text("the model has ", names.size(), " outputs; name one of them: ")
                    : text("'", name, "' is no output; its outputs: "),
       quoted_list(names));
}

[[noreturn]] void refuse(const Node& node, const std::string& why) {
  fail(ErrorKind::unsupported, "replace head: ", node.label(), " ", why,
       "; cut the model before it and append layers");
}

/// Removes a constant that nothing reads any more; old files list those among the inputs.
void drop_unused(Graph& graph, Value* constant) {
  if (!constant->is_unused()) return;
  if (constant->producer() != nullptr) {
    graph.remove(constant->producer());
  } else if (constant->is_graph_input()) {
    graph.remove_input(constant);
  } else {
    graph.remove_initializer(constant);
  }
}

/// A head, and in which axis of its weight the classes lie.
class Head {
 public:
  Head(Graph& graph, Value* output) : graph_(graph), output_(output) {
    const std::vector<WeightedLayer> layers = weighted_layers(graph, {output});
    if (layers.empty()) {
      fail(ErrorKind::unsupported, "replace head: no layer with weights makes '", output->name(),
           "'; append one");
    }
    layer_ = layers.back();
    if (!is_only_way(graph, node().output(), {output})) {
      refuse(node(), text("is not all that makes '", output->name(), "'"));
    }
    find_axis();
    find_behind();
  }

  Node& node() const { return *layer_.node; }
  Value* weight() const { return layer_.weight; }
  std::int64_t old_classes() const { return tensor().shape()[axis_]; }
  Tensor tensor() const { return constant_tensor(*weight()); }
  /// The bias, and which input of which node it is; null where there is none.
  const Use& bias() const { return bias_; }
  const std::vector<Node*>& behind() const { return behind_; }

  Shape weight_shape(std::int64_t classes) const {
    const Shape old = tensor().shape();
    std::vector<std::int64_t> dims(old.begin(), old.end());
    dims[static_cast<std::size_t>(axis_)] = classes;
    return Shape(dims);
  }
  Fans fans(std::int64_t classes) const {
    const Shape shape = weight_shape(classes);
    const std::int64_t kernel = node().is("Conv") ? shape.size(2, shape.rank()) : 1;
    return {.in = shape.size() / classes, .out = classes * kernel};
  }

  /// Reads the new weight in the place of the old.
  void set_weight(Value* fresh) { take_place(layer_.weight, {&node(), layer_.slot}, fresh); }
  void set_bias(Value* fresh) { take_place(bias_.node->input(bias_.index), bias_, fresh); }

 private:
  void find_axis() {
    const bool is_direct = node().input(layer_.slot) == weight();
    if (!is_float(tensor().dtype())) refuse(node(), "has a quantized weight");
    if (!is_direct) turn_ = node().input(layer_.slot)->producer();
    const bool is_turned = turn_ != nullptr && turn_->is("Transpose") &&
                           turn_->input(0) == weight() && tensor().rank() == 2;
    if (!is_direct && !is_turned) refuse(node(), "has a weight that is computed");
    if (layer_.slot != 1) refuse(node(), kNoHead);
    if (node().is("Conv")) {
      if (node().attributes.get_int("group", 1) != 1) refuse(node(), "has groups");
      axis_ = 0;
    } else if (node().is("Gemm")) {
      axis_ = node().attributes.get_int("transB", 0) != 0 ? 0 : 1;
    } else if (node().is("MatMul") && tensor().rank() == 2) {
      axis_ = 1;
    } else {
      refuse(node(), kNoHead);
    }
    if (is_turned) axis_ = 1 - axis_;
  }

  /// Numbers of the old classes behind the head cannot stay: a bias is made anew, a Reshape's
  /// target follows, all else is refused.
  void find_behind() {
    if (!node().is("MatMul") && node().input(2) != nullptr) bias_ = {&node(), 2};
    ValueSet made{node().output()};
    const ValueSet needed = needed_values(graph_, {node().output()}, {output_});
    for (Node* at = graph_.next(&node()); at != nullptr; at = graph_.next(at)) {
      const bool reads =
          std::ranges::any_of(at->inputs(), [&](Value* i) { return made.contains(i); });
      if (!reads || at->output() == nullptr || !needed.contains(at->output())) continue;
      made.insert(at->output());
      if (is_bias(*at)) continue;
      check_constants(*at);
      behind_.push_back(at);
    }
  }

  bool is_bias(Node& node) {
    if (bias_.node != nullptr || !node.is("Add") || !layer_.node->is("MatMul")) return false;
    for (int i = 0; i < 2; ++i) {
      Value* const other = node.input(1 - i);
      if (node.input(i) != layer_.node->output() || other == nullptr) continue;
      const Tensor numbers = constant_tensor(*other);
      if (!numbers.defined() || numbers.rank() == 0 || numbers.size() != old_classes() ||
          numbers.shape()[numbers.rank() - 1] != old_classes()) {
        continue;
      }
      bias_ = {&node, 1 - i};
      return true;
    }
    return false;
  }

  void check_constants(const Node& node) const {
    for (int i = 0; i < node.input_count(); ++i) {
      const Value* const input = node.input(i);
      const Tensor numbers = input == nullptr ? Tensor() : constant_tensor(*input);
      if (!numbers.defined() || !is_float(numbers.dtype()) || numbers.size() <= 1) continue;
      refuse(node, text("behind the head holds '", input->name(), "', ", describe(numbers),
                        ", numbers of the old classes"));
    }
  }

  void take_place(Value* old, const Use& use, Value* fresh) {
    const bool is_turned = turn_ != nullptr && old == weight();
    if (is_turned) {
      Node* const turn = graph_.add_node("Transpose", "", {fresh},
                                         {graph_.unique_name(fresh->name() + ".transposed")},
                                         turn_->attributes, use.node);
      fresh = turn->output();
    }
    use.node->set_input(use.index, fresh);
    if (is_turned && turn_->output()->is_unused()) graph_.remove(turn_);
    drop_unused(graph_, old);
  }

  static constexpr const char* kNoHead = "is no Gemm, MatMul or Conv by a weight of its own";

  Graph& graph_;
  Value* output_;
  WeightedLayer layer_{};
  Node* turn_ = nullptr;
  Use bias_{nullptr, 0};
  int axis_ = 0;
  std::vector<Node*> behind_;
};

/// Targets of Reshape that hold the old number of classes.
void follow(Graph& graph, Node& node, std::int64_t old_classes, std::int64_t classes) {
  Value* const target = node.is("Reshape") ? node.input(1) : nullptr;
  const Tensor numbers = target == nullptr ? Tensor() : constant_tensor(*target);
  if (!numbers.defined()) return;
  const auto old = numbers.values<const std::int64_t>();
  std::vector<std::int64_t> dims(old.begin(), old.end());
  if (std::ranges::count(dims, old_classes) == 0) return;
  if (std::ranges::count(dims, old_classes) > 1) {
    refuse(node, text("reshapes to ", old_classes, " twice, of which one may be the classes"));
  }
  std::ranges::replace(dims, old_classes, classes);
  node.set_input(1, graph.add_initializer(graph.unique_name(target->name()),
                                          Tensor::from(numbers.shape(), dims)));
  drop_unused(graph, target);
}

/// A parameter in the place of another, under its name where nothing else reads that.
Value* add_parameter(Graph& graph, const Value& old, const std::string& name, Tensor tensor) {
  const std::string stem = name.empty() ? old.name() : name;
  Value* const fresh = graph.add_initializer(graph.unique_name(stem), std::move(tensor));
  return fresh;
}

/// Once the old one is gone, its name is free.
void settle_name(Graph& graph, Value* value, const std::string& wanted) {
  if (value->name() != wanted && graph.find(wanted) == nullptr) graph.rename(value, wanted);
}

ReplacedHead replace(Model& model, std::int64_t classes, const HeadOptions& options) {
  Graph& graph = model.graph();
  Head head(graph, find_output(graph, options.output));
  ReplacedHead done{.layer = head.node().label(),
                    .features = head.fans(classes).in,
                    .old_classes = head.old_classes(),
                    .classes = classes};
  const DType dtype = head.tensor().dtype();
  const auto renew = [&](const char* suffix, const Value& old, const auto& make, auto set) {
    const std::string own = options.name.empty() ? "" : options.name + suffix;
    if (!own.empty() && (graph.find(own) != nullptr || is_name_of_body(graph, own))) {
      fail(ErrorKind::argument, "replace head: the name '", own, "' is taken");
    }
    const std::string wanted = own.empty() ? old.name() : own;
    Value* const fresh = add_parameter(graph, old, own, make(wanted));
    set(fresh);
    settle_name(graph, fresh, wanted);
    done.parameters.push_back(fresh->name());
  };
  if (const Use bias = head.bias(); bias.node != nullptr) {
    const double bound = 1 / std::sqrt(static_cast<double>(done.features));
    renew(
        ".bias", *bias.node->input(bias.index),
        [&](const std::string& name) {
          return options.init ? Tensor::zeros(dtype, {classes})
                              : init_uniform(options.seed, name, dtype, {classes}, bound);
        },
        [&](Value* fresh) { head.set_bias(fresh); });
  }
  for (Node* node : head.behind()) {
    follow(graph, *node, done.old_classes, classes);
    done.kept.push_back(node->label());
  }
  renew(
      ".weight", *head.weight(),
      [&](const std::string& name) {
        return init_weight(options.init.value_or(Init{}), head.fans(classes), options.seed, name,
                           dtype, head.weight_shape(classes));
      },
      [&](Value* fresh) { head.set_weight(fresh); });
  std::ranges::reverse(done.parameters);
  const auto is_fresh = [&](const Value& value) {
    return std::ranges::find(done.parameters, value.name()) != done.parameters.end();
  };
  unfreeze(model, is_fresh);  // they may have the names of frozen ones
  for (const std::string& name : done.parameters) graph.find(name)->role = Role::parameter;
  // The head's own type, too: its data is where nothing changed.
  for (Value* input : head.node().inputs()) {
    if (input != nullptr && constant_behind(input) == nullptr) retype_behind(model, *input);
  }
  return done;
}

/// Targets of Reshape that are computed show only for a known batch that they no longer fit.
void check_for_batch(const Model& model, std::int64_t batch) {
  Model copy = model.clone();
  try {
    set_batch(copy, batch);
  } catch (const Error&) {  // the model has no such batch
    return;
  }
  inferred_output_types(copy);
}

}  // namespace

ReplacedHead replace_head(Model& model, std::int64_t classes, const HeadOptions& options) {
  if (classes < 1) {
    fail(ErrorKind::argument, "replace head: classes is ", classes, ", wanted at least 1");
  }
  Model copy = model.clone();
  replace(copy, classes, options);  // what throws, throws for the copy
  check_for_batch(copy, 2);
  return replace(model, classes, options);
}

}  // namespace graft::edit
