#include "core/layers/lora.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "core/base/closest.h"
#include "core/base/regex.h"
#include "core/graph/edit.h"
#include "core/graph/frozen.h"
#include "core/layers/init.h"
#include "core/layers/layer_names.h"
#include "core/layers/lora_internal.h"

namespace graft::edit {
namespace {

constexpr std::int64_t kMostRank = std::int64_t{1} << 20;

/// The rank of an adapter for the layer, by its A.
std::int64_t rank_of(const LoraTarget& target, const Tensor& a) {
  return a.rank() > 0 ? a.shape()[0] / target.groups : 0;
}

/// Adds nodes behind a layer.
class LoraWriter {
 public:
  LoraWriter(Graph& graph, const LoraTarget& target)
      : graph_(graph), target_(target), before_(graph.next(target.node)) {}

  void attach(Value* a, Value* b, double scale) {
    Value* const factor = graph_.add_initializer(graph_.unique_name(target_.layer + ".lora_scale"),
                                                 Tensor::full(target_.dtype, {}, scale));
    factor->role = Role::constant;
    Value* const down = product(target_.node->input(0), a, ".lora_A", target_.node->attributes);
    Value* const scaled = node("Mul", {down, factor}, ".lora_scaled");
    Attributes groups;
    if (target_.groups > 1) groups.set({"group", target_.groups});
    Value* const up = product(scaled, b, ".lora_B", groups);
    insert_behind(target_.node->output(), "Add", {up}, target_.layer + ".base_layer", before_)
        ->set_name(target_.layer + ".lora_sum");
  }

 private:
  Value* node(std::string_view op, const std::vector<Value*>& inputs, const std::string& suffix,
              Attributes attributes = {}) {
    const std::string name = target_.layer + suffix;
    Node* const made =
        graph_.add_node(op, "", inputs, {graph_.unique_name(name)}, std::move(attributes), before_);
    made->set_name(name);
    return made->output();
  }

  /// x factor^T, or the convolution by it.
  Value* product(Value* x, Value* factor, const std::string& suffix, const Attributes& attributes) {
    if (target_.node->is("Conv")) return node("Conv", {x, factor}, suffix, attributes);
    Value* const turned = node("Transpose", {factor}, suffix + "_transposed",
                               {{"perm", std::vector<std::int64_t>{1, 0}}});
    return node("MatMul", {x, turned}, suffix);
  }

  Graph& graph_;
  const LoraTarget& target_;
  Node* before_;
};

Shape shape_of_a(const LoraTarget& target, std::int64_t rank) {
  std::vector<std::int64_t> dims{checked_multiply(rank, target.groups)};
  dims.insert(dims.end(), target.in.begin(), target.in.end());
  return Shape(dims);
}

Shape shape_of_b(const LoraTarget& target, std::int64_t rank) {
  std::vector<std::int64_t> dims(target.in.size() + 1, 1);
  dims[0] = target.out;
  dims[1] = rank;
  return Shape(dims);
}

/// The adapter of a layer that starts without effect.
LoraAdapter fresh_adapter(const LoraTarget& target, const LoraOptions& options) {
  const std::int64_t fan_in = Shape(target.in).size();
  const double bound = 1 / std::sqrt(static_cast<double>(fan_in));
  const std::int64_t rank = options.rank;
  return {.layer = target.layer,
          .a = init_uniform(options.seed, target.layer + std::string(kLoraA), target.dtype,
                            shape_of_a(target, rank), bound),
          .b = Tensor::zeros(target.dtype, shape_of_b(target, rank)),
          .alpha = options.alpha.value_or(static_cast<double>(rank))};
}

std::string quoted_few(std::vector<std::string> names) {
  constexpr std::size_t kMost = 8;
  const bool has_more = names.size() > kMost;
  names.resize(std::min(names.size(), kMost));
  return quoted_list(names) + (has_more ? ", ..." : "");
}

std::vector<std::string> layers_of(const std::vector<LoraTarget>& targets) {
  std::vector<std::string> names;
  for (const LoraTarget& target : targets) {
    if (std::ranges::find(names, target.layer) == names.end()) names.push_back(target.layer);
  }
  return names;
}

void check_alpha(double alpha) {
  if (!(std::isfinite(alpha) && alpha > 0)) {
    fail(ErrorKind::argument, "lora: alpha is ", alpha, ", wanted a number above 0");
  }
}

void check(const LoraOptions& options) {
  if (options.rank < 1 || options.rank > kMostRank) {
    fail(ErrorKind::argument, "lora: the rank is ", options.rank, ", wanted 1 to ", kMostRank);
  }
  if (options.alpha) check_alpha(*options.alpha);
}

bool matches(const Regex& pattern, const LoraTarget& target) {
  return pattern.full_match(target.layer) || pattern.full_match(target.weight_name) ||
         pattern.full_match(target.node->name());
}

/// Why a layer that could have an adapter gets none; empty where it does.
std::string obstacle(const Graph& graph, const LoraTarget& target) {
  for (const std::string_view suffix : {kLoraA, kLoraB}) {
    const std::string name = target.layer + std::string(suffix);
    if (graph.find(name) != nullptr || is_name_of_body(graph, name)) {
      return "it has an adapter already ('" + name + "'); merge that first";
    }
  }
  return {};
}

/// All of a model that could train but adapters.
void freeze_base(Model& model) {
  freeze(model, [](const Value& value) {
    const bool is_open =
        value.role == Role::unknown || value.role == Role::parameter || value.role == Role::folded;
    return is_open && !is_of_lora(value);
  });
}

void check_fits(const LoraTarget& target, const LoraAdapter& adapter) {
  const std::int64_t rank = rank_of(target, adapter.a);
  const Shape a = shape_of_a(target, rank);
  const Shape b = shape_of_b(target, rank);
  if (rank > 0 && adapter.a.shape() == a && adapter.b.shape() == b && is_float(adapter.a.dtype()) &&
      is_float(adapter.b.dtype())) {
    return;
  }
  fail(ErrorKind::shape, "lora: the adapter of layer '", target.layer, "' is A ",
       describe(adapter.a), " and B ", describe(adapter.b), ", wanted ", describe(target.dtype, a),
       " and ", describe(target.dtype, b));
}

/// Of the type in which the layer computes.
Tensor converted(const Tensor& tensor, DType dtype) {
  return tensor.dtype() == dtype ? tensor.clone() : tensor.cast(dtype);
}

void attach(Graph& graph, const LoraTarget& target, const LoraAdapter& adapter) {
  const auto parameter = [&](std::string_view suffix, const Tensor& tensor) {
    const std::string name = target.layer + std::string(suffix);
    Value* const known = graph.find(name);  // where a layer is called twice
    return known != nullptr ? known : graph.add_initializer(name, converted(tensor, target.dtype));
  };
  Value* const a = parameter(kLoraA, adapter.a);
  Value* const b = parameter(kLoraB, adapter.b);
  const auto rank = static_cast<double>(rank_of(target, adapter.a));
  LoraWriter(graph, target).attach(a, b, adapter.alpha / rank);
}

}  // namespace

LoraReport add_lora(Model& model, const LoraOptions& options) {
  check(options);
  const Regex pattern(options.pattern);
  LoraReport report;
  LoraTargets targets = lora_targets(model);
  for (const auto& [target, why] : targets.others) {
    if (matches(pattern, target)) report.left_out.push_back(why);
  }
  const std::vector<std::string> all = layers_of(targets.found);
  std::erase_if(targets.found, [&](const LoraTarget& t) { return !matches(pattern, t); });
  std::erase_if(targets.found, [&](const LoraTarget& target) {
    const std::string why = obstacle(model.graph(), target);
    if (!why.empty()) report.left_out.push_back(target.node->label() + ": " + why);
    return !why.empty();
  });
  report.adapted = layers_of(targets.found);
  if (report.adapted.empty() && !report.left_out.empty()) {
    fail(ErrorKind::argument, "lora pattern '", options.pattern, "' matches only ",
         report.left_out.front());
  }
  if (report.adapted.empty()) {
    fail(ErrorKind::argument, "lora pattern '", options.pattern, "' matches none of ", all.size(),
         " layers", all.empty() ? "" : ": ", quoted_few(all));
  }
  std::vector<LoraAdapter> adapters;  // all memory that is needed, before anything changes
  for (const LoraTarget& target : targets.found) {
    adapters.push_back(fresh_adapter(target, options));
  }
  for (std::size_t i = 0; i < adapters.size(); ++i) {
    attach(model.graph(), targets.found[i], adapters[i]);
  }
  freeze_base(model);
  return report;
}

void apply_lora(Model& model, const std::vector<LoraAdapter>& adapters) {
  const LoraTargets targets = lora_targets(model);
  std::vector<std::pair<const LoraTarget*, const LoraAdapter*>> pairs;
  std::vector<std::string> missing;
  std::set<std::string_view> layers;
  for (const LoraAdapter& adapter : adapters) {
    bool found = false;
    check_alpha(adapter.alpha);
    if (!layers.insert(adapter.layer).second) {
      fail(ErrorKind::argument, "lora: layer '", adapter.layer, "' is given two adapters");
    }
    for (const LoraTarget& target : targets.found) {
      if (target.layer != adapter.layer) continue;
      found = true;
      check_fits(target, adapter);
      const std::string why = obstacle(model.graph(), target);
      if (!why.empty()) fail(ErrorKind::argument, "lora: ", target.node->label(), ": ", why);
      pairs.emplace_back(&target, &adapter);
    }
    if (!found) missing.push_back(adapter.layer);
  }
  if (adapters.empty()) fail(ErrorKind::argument, "lora: there is no adapter to apply");
  if (!missing.empty()) {
    fail(ErrorKind::argument, "lora: the model has no layer ", quoted_few(missing),
         "; its layers: ", quoted_few(layers_of(targets.found)));
  }
  for (const auto& [target, adapter] : pairs) attach(model.graph(), *target, *adapter);
  freeze_base(model);
}

}  // namespace graft::edit
