#include <cmath>

#include "core/layers/kinds.h"

// Layers for sequences [N,length,features].

namespace graft::layers {

Value* add(LayerContext& context, const Embedding& layer, Value* input) {
  const std::string name = context.name("embedding", layer.name);
  const std::string who = "embedding '" + name + "'";
  require_at_least(who, "count", layer.count, 1);
  require_at_least(who, "size", layer.size, 1);
  if (input->dtype() != DType::i32 && input->dtype() != DType::i64) {
    fail(ErrorKind::type, who, ": '", input->name(), "' is ", input->type(),
         ", wanted indices, i64 or i32");
  }
  Value* const weight =
      context.weight(name + ".weight", DType::f32, {layer.count, layer.size},
                     {layer.size, layer.count}, {layer.init, layer.seed}, {.kind = Init::normal});
  return context.node("Gather", {weight, input}, name);
}

namespace {

/// What Lstm and Gru differ in.
struct Cell {
  std::string_view op;
  std::int64_t gates;
};

template <class Kind>
Attributes recurrent_attributes(const Cell& cell, const Kind& layer) {
  Attributes attributes{{"hidden_size", layer.hidden}};
  if (layer.bidirectional) attributes.set({"direction", std::string("bidirectional")});
  if (cell.op == "GRU") attributes.set({"linear_before_reset", 1});  // as PyTorch and cuDNN do
  return attributes;
}

/// One layer of the stack, over x [length,N,features]. Its first output is the states
/// [length,directions,N,hidden]; with `only_last` there is the second alone, those at the end
/// [directions,N,hidden].
template <class Kind>
Node* add_cell(LayerContext& context, const Cell& cell, const Kind& layer, const std::string& name,
               std::int64_t index, Value* x, bool only_last) {
  const std::string level = text("_l", index);
  const std::int64_t directions = layer.bidirectional ? 2 : 1;
  const std::int64_t rows = checked_multiply(cell.gates, layer.hidden);
  const double bound = 1 / std::sqrt(static_cast<double>(layer.hidden));
  const WeightStart start{layer.init, layer.seed};
  const auto weight = [&](const char* which, std::int64_t columns) {
    const std::string full = name + which + level;
    const Shape shape{directions, rows, columns};
    if (context.has_init(start)) {
      return context.weight(full, x->dtype(), shape, {columns, rows}, start);
    }
    return context.uniform(full, x->dtype(), shape, bound, layer.seed);
  };
  Value* const in = weight(".weight_ih", features_of(name, *x, 2));
  Value* const recurrent = weight(".weight_hh", layer.hidden);
  Value* const bias =
      context.bias(name + ".bias" + level, x->dtype(), {directions, 2 * rows}, bound, start);
  std::vector<std::string> outputs{name + level};
  if (only_last) outputs = {"", name + level};
  return context.node_of(cell.op, {x, in, recurrent, bias}, name + level, outputs,
                         recurrent_attributes(cell, layer));
}

/// Swaps the axes of batch and length, or of directions and batch.
Value* transpose(LayerContext& context, Value* x, const std::string& name,
                 const std::vector<std::int64_t>& permutation) {
  return context.node("Transpose", {x}, name, {{"perm", permutation}});
}

template <class Kind>
Value* add_recurrent(LayerContext& context, const Cell& cell, std::string_view kind,
                     const Kind& layer, Value* input) {
  const std::string name = context.name(kind, layer.name);
  const std::string who = text(kind, " '", name, "'");
  require_at_least(who, "hidden", layer.hidden, 1);
  require_at_least(who, "depth", layer.depth, 1);
  shape_of(who, *input, 3, 3);
  features_of(who, *input, 2);
  const std::int64_t features = checked_multiply(layer.bidirectional ? 2 : 1, layer.hidden);
  const auto reshape = [&](Value* x, const std::string& to, std::vector<std::int64_t> dims) {
    dims.push_back(features);
    return context.node("Reshape", {x, context.integers(to + ".shape", dims)}, to);
  };
  Value* x = transpose(context, input, name + ".steps", {1, 0, 2});
  for (std::int64_t i = 0; i < layer.depth; ++i) {
    const bool only_last = i + 1 == layer.depth && layer.steps == Steps::last;
    const std::string level = text(name, "_l", i);
    const Node* const node = add_cell(context, cell, layer, name, i, x, only_last);
    if (only_last) {
      Value* const states = transpose(context, node->output(1), level + ".states", {1, 0, 2});
      return reshape(states, name, {0});
    }
    Value* const states = transpose(context, node->output(0), level + ".states", {0, 2, 1, 3});
    x = reshape(states, level + ".joined", {0, 0});
  }
  return transpose(context, x, name, {1, 0, 2});
}

}  // namespace

Value* add(LayerContext& context, const Lstm& layer, Value* input) {
  return add_recurrent(context, {.op = "LSTM", .gates = 4}, "lstm", layer, input);
}

Value* add(LayerContext& context, const Gru& layer, Value* input) {
  return add_recurrent(context, {.op = "GRU", .gates = 3}, "gru", layer, input);
}

}  // namespace graft::layers
