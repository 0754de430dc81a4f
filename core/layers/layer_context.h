#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/graph.h"
#include "core/layers/layer.h"

namespace graft {

/// How a layer wants a weight to start.
struct WeightStart {
  std::optional<Init> init{};
  std::optional<std::uint64_t> seed{};
};

/// Where layers are added to a graph, whose nodes stand in the forms of `opset`.
class LayerContext {
 public:
  /// `seed` serves the layers that name none. Throws Error{unsupported} if `opset` is below 7.
  LayerContext(Graph& graph, std::int64_t opset, std::uint64_t seed = 0);

  std::int64_t opset() const { return opset_; }
  std::uint64_t seed() const { return seed_; }
  /// Nodes are added before `before`; at the end when null, which is the default.
  void insert_before(Node* before) { before_ = before; }
  /// How weights start of layers that do not say it.
  void set_init(const std::optional<Init>& init) { init_ = init; }
  /// Whether the layer or the context says how a weight starts.
  bool has_init(const WeightStart& start) const { return start.init || init_; }

  /// The layer's name: the given one or, if that is empty, a fresh "linear1".
  /// Throws Error{argument} if a value or a parameter of the given name exists.
  std::string name(std::string_view kind, const std::string& given) const;

  /// A node of the standard domain with one output; node and output are called `name`.
  Value* node(std::string_view op, const std::vector<Value*>& inputs, const std::string& name,
              Attributes attributes = {});
  /// The same with several outputs; those with an empty name are left out.
  Node* node_of(std::string_view op, const std::vector<Value*>& inputs, const std::string& name,
                const std::vector<std::string>& outputs, Attributes attributes = {});
  /// A parameter or another constant: an initializer of exactly that name.
  Value* initializer(const std::string& name, Tensor tensor);
  /// Adds a parameter drawn from [-bound, bound); the seed is the context's unless given.
  Value* uniform(const std::string& name, DType dtype, const Shape& shape, double bound,
                 std::optional<std::uint64_t> seed);
  /// Adds a weight that starts by `start`, else by the context's initializer, else by `usual`.
  Value* weight(const std::string& name, DType dtype, const Shape& shape, const Fans& fans,
                const WeightStart& start, const Init& usual = {});
  /// Adds the bias of a layer with such weights: zeros if an initializer is said, else drawn from
  /// [-bound, bound).
  Value* bias(const std::string& name, DType dtype, const Shape& shape, double bound,
              const WeightStart& start);
  /// Adds i64 numbers [count].
  Value* integers(const std::string& name, const std::vector<std::int64_t>& numbers);
  /// Adds a constant: a scalar of the element type of `like`.
  Value* scalar(const std::string& name, const Value& like, double value);

 private:
  bool is_taken(const std::string& name) const;

  Graph& graph_;
  std::int64_t opset_;
  std::uint64_t seed_;
  std::optional<Init> init_{};
  Node* before_ = nullptr;
};

/// Adds a layer that reads `input` and returns its output. Element type and features are those of
/// `input`. Throws Error{shape} naming value and remedy if `input` has not the rank that the layer
/// takes or its features are unknown, Error{type} if it is not floating-point (of an Embedding: not
/// i32 or i64), Error{argument} if
/// the layer's numbers make no sense, Error{unsupported} if the opset cannot say it. What was added
/// until then stays in the graph.
Value* add_layer(LayerContext& context, const Layer& layer, Value* input);
/// Adds layers one after the other; returns the output of the last.
Value* add_layers(LayerContext& context, const std::vector<Layer>& layers, Value* input);

}  // namespace graft
