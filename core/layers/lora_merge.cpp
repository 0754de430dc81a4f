// Adapters that a model has: found again, and made part of their weights.
#include <map>
#include <span>

#include "core/base/parallel.h"
#include "core/graph/edit.h"
#include "core/graph/frozen.h"
#include "core/layers/known_value.h"
#include "core/layers/lora_internal.h"

namespace graft::edit {
namespace {

/// The node that reads B, perhaps transposed: as its only reader, or one of several calls.
Node* reader_of(const Use& use) {
  if (!use.node->is("Transpose")) return use.node;
  const Value* const turned = use.node->output();
  return turned->uses().size() == 1 ? turned->uses()[0].node : nullptr;
}

Value* factor_of(const Node& product) {
  Value* const factor = product.input(1);
  const Node* const turn = factor == nullptr ? nullptr : factor->producer();
  return turn != nullptr && turn->is("Transpose") ? turn->input(0) : factor;
}

bool is_product(const Node* node) {
  return node != nullptr && (node->is("MatMul") || node->is("Conv"));
}

Node* only_reader(const Node& node) {
  const Value& output = *node.output();
  return output.uses().size() == 1 && !output.is_graph_output() ? output.uses()[0].node : nullptr;
}

/// From B backwards to A, and forwards to the sum; what is not as add_lora writes it stays null.
AttachedLora follow(const Use& use_of_b, const std::string& layer) {
  AttachedLora found{.layer = layer};
  found.up = reader_of(use_of_b);
  if (!is_product(found.up)) return found;
  found.b = factor_of(*found.up);
  Node* const scaled = found.up->input(0)->producer();
  if (scaled == nullptr || !scaled->is("Mul") || !scaled->input(1)->is_initializer()) return found;
  found.scaled = scaled;
  found.down = scaled->input(0)->producer();
  if (!is_product(found.down)) return found;
  found.a = factor_of(*found.down);
  Node* const sum = only_reader(*found.up);
  if (sum == nullptr || !sum->is("Add") || sum->input(1) != found.up->output()) return found;
  found.base = sum->input(0)->producer();
  found.sum = sum;
  return found;
}

std::int64_t groups_of(const AttachedLora& adapter) {
  return adapter.base->is("Conv") ? adapter.base->attributes.get_int("group", 1) : 1;
}

std::int64_t rank_of(const AttachedLora& adapter) {
  return adapter.a->initializer().shape()[0] / groups_of(adapter);
}

/// Whether the rows of A and B divide into the groups of the layer, as those of add_lora do.
bool has_groups(const AttachedLora& found) {
  const Tensor& a = found.a->initializer();
  const Tensor& b = found.b->initializer();
  if (!a.defined() || !b.defined() || a.rank() < 2 || groups_of(found) < 1) return false;
  const std::int64_t rank = rank_of(found);
  return rank > 0 && a.shape()[0] % groups_of(found) == 0 && b.size() % rank == 0 &&
         b.size() / rank % groups_of(found) == 0;
}

bool is_whole(const AttachedLora& found) {
  if (found.sum == nullptr || found.base == nullptr || found.base->input_count() < 2) return false;
  if (found.a == nullptr || found.b == nullptr) return false;
  const Tensor& factor = found.scaled->input(1)->initializer();
  return found.a->name() == found.layer + std::string(kLoraA) &&
         found.b->name() == found.layer + std::string(kLoraB) && has_groups(found) &&
         factor.size() == 1 && found.base->output()->uses().size() == 1 &&
         found.base->input(0) == found.down->input(0);
}

/// scale B A, [out,in] with all that is behind the rank in `in`; of groups each by its own rows of
/// A. As many elements as the weight has: A and B are small where their product is not.
Tensor change_of(const AttachedLora& adapter, const Tensor& weight) {
  const Tensor a = adapter.a->initializer().to(cpu()).cast(DType::f32);
  const Tensor b = adapter.b->initializer().to(cpu()).cast(DType::f32);
  const std::int64_t rank = rank_of(adapter);
  const auto scale = static_cast<float>(adapter.alpha / static_cast<double>(rank));
  const std::int64_t in = a.size() / a.shape()[0];
  const std::int64_t out = b.size() / rank;
  const std::int64_t out_of_group = out / groups_of(adapter);
  if (Shape({out, in}).size() != weight.size()) {
    fail(ErrorKind::model, "lora: the weight of layer '", adapter.layer, "' is ", describe(weight),
         ", its adapter changes one of ", out, " x ", in, " elements");
  }
  Tensor change = Tensor::zeros(DType::f32, {out, in});
  const float* const from = a.values<const float>().data();
  const float* const weights = b.values<const float>().data();
  float* const to = change.values<float>().data();
  parallel_for(out, 1, [=](std::int64_t first, std::int64_t last) {
    for (std::int64_t o = first; o < last; ++o) {
      for (std::int64_t k = 0; k < rank; ++k) {
        const float factor = scale * weights[o * rank + k];
        const float* const row = from + (o / out_of_group * rank + k) * in;
        for (std::int64_t i = 0; i < in; ++i) to[o * in + i] += factor * row[i];
      }
    }
  });
  return change;
}

bool is_packed(const Node& layer) {
  return layer.is("MatMulNBits", "com.microsoft");
}

/// Whether the weight of the layer is [in,out].
bool has_columns(const Node& layer) {
  return layer.is("MatMul") || is_packed(layer) ||
         (layer.is("Gemm") && layer.attributes.get_int("transB", 0) == 0);
}

Tensor merged(const Tensor& weight, const AttachedLora& adapter) {
  const Tensor change = change_of(adapter, weight);
  const Tensor sum = weight.dtype() == DType::f32 ? weight.clone() : weight.cast(DType::f32);
  // Gemm scales x W, but not what the adapter adds.
  const float alpha =
      adapter.base->is("Gemm") ? adapter.base->attributes.get_float("alpha", 1.0F) : 1.0F;
  const std::span<float> to = sum.values<float>();
  const std::span<const float> from = change.values<const float>();
  const auto in = static_cast<std::size_t>(change.shape()[1]);
  const auto out = static_cast<std::size_t>(change.shape()[0]);
  const bool columns = has_columns(*adapter.base);
  for (std::size_t o = 0; o < out; ++o) {
    for (std::size_t i = 0; i < in; ++i) {
      to[columns ? i * out + o : o * in + i] += from[o * in + i] / alpha;
    }
  }
  return weight.dtype() == DType::f32 ? sum : sum.cast(weight.dtype());
}

/// A weight and the A of an adapter that changes it.
using Weight = std::pair<const Value*, const Value*>;

Weight weight_of(const AttachedLora& adapter) {
  return {adapter.base->input(1), adapter.a};
}

/// What becomes of such a weight, which a layer that is called twice reads twice.
struct Merged {
  std::size_t calls = 0;
  Tensor tensor{};
  Value* value = nullptr;
};

/// In place of the weight where it is an initializer that nothing else reads.
Value* put(Graph& graph, const AttachedLora& adapter, const Merged& merged) {
  Value* const old = adapter.base->input(1);
  if (old->is_initializer() && !old->is_graph_input() && old->uses().size() == merged.calls &&
      !old->is_graph_output() && old->initializer().shape() == merged.tensor.shape() &&
      old->dtype() == merged.tensor.dtype()) {
    old->set_initializer(merged.tensor);
    return old;
  }
  return graph.add_initializer(graph.unique_name(adapter.layer + ".weight"), merged.tensor);
}

/// Lets a layer read that weight. A MatMulNBits can read packed numbers only: a MatMul takes its
/// place.
Node* with_weight(Graph& graph, Node* layer, Value* weight) {
  constexpr int kBias = 5;
  if (!is_packed(*layer)) {
    layer->set_input(1, weight);
    return layer;
  }
  const std::string name = layer->output()->name();
  const auto add = [&](const char* op, Value* first, Value* second) {
    return graph.add_node(op, "", {first, second}, {graph.unique_name(name + "_product")}, {},
                          layer);
  };
  Node* product = add("MatMul", layer->input(0), weight);
  if (Value* const bias = layer->input(kBias)) product = add("Add", product->output(), bias);
  product->output()->set_type(layer->output()->type());
  graph.replace_all_uses(layer->output(), product->output());
  graph.remove(layer);
  return product;
}

/// Takes an adapter's nodes away; its layer's result gets its name back.
void detach(Graph& graph, const AttachedLora& adapter) {
  Value* const y = adapter.base->output();
  Value* const sum = adapter.sum->output();
  const std::string name = sum->name();
  graph.replace_all_uses(sum, y);
  graph.preserve(y) = graph.preserved_of(sum);
  graph.remove(adapter.sum);
  graph.rename(y, name);
}

}  // namespace

std::vector<AttachedLora> attached_lora(const Graph& graph) {
  std::vector<AttachedLora> all;
  for (const Value* b : graph.initializers()) {
    if (!b->name().ends_with(kLoraB)) continue;
    const std::string layer = b->name().substr(0, b->name().size() - kLoraB.size());
    for (const Use& use : b->uses()) {
      AttachedLora found = follow(use, layer);
      if (!is_whole(found)) {
        fail(ErrorKind::model, "lora: the nodes round '", b->name(),
             "' are not those of an adapter any more (", use.node->label(), ")");
      }
      found.alpha = to_double(found.scaled->input(1)->initializer()).front() *
                    static_cast<double>(rank_of(found));
      all.push_back(std::move(found));
    }
  }
  return all;
}

std::vector<LoraAdapter> lora_adapters(const Model& model) {
  std::vector<LoraAdapter> adapters;
  for (const AttachedLora& found : attached_lora(model.graph())) {
    if (!adapters.empty() && adapters.back().layer == found.layer) continue;
    adapters.push_back({found.layer, found.a->initializer(), found.b->initializer(), found.alpha});
  }
  return adapters;
}

std::vector<std::string> merge_lora(Model& model) {
  Graph& graph = model.graph();
  std::vector<AttachedLora> adapters = attached_lora(graph);
  if (adapters.empty()) fail(ErrorKind::argument, "lora: the model has no adapter to merge");
  std::map<Weight, Merged> all;
  for (const AttachedLora& adapter : adapters) {
    Merged& one = all[weight_of(adapter)];
    if (++one.calls == 1) one.tensor = merged(known_weight(model, *adapter.base), adapter);
  }
  std::vector<std::string> layers;
  for (AttachedLora& adapter : adapters) {
    Merged& one = all[weight_of(adapter)];
    if (one.value == nullptr) {
      one.value = put(graph, adapter, one);
      layers.push_back(adapter.layer);
    }
    adapter.base = with_weight(graph, adapter.base, one.value);
    detach(graph, adapter);
  }
  remove_unused(graph);
  forget_frozen(model);
  unfreeze(model, [](const Value& /*value*/) { return true; });
  return layers;
}

}  // namespace graft::edit
