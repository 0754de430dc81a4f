#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/graph/graph.h"

namespace graft {

/// What an inference function sees of one node, and where it writes output types. One function
/// serves symbolic shapes (a dim may be named or unknown) and concrete ones.
class InferContext {
 public:
  explicit InferContext(Node& node) : node_(node) {}

  const Node& node() const { return node_; }
  const Attributes& attributes() const { return node_.attributes; }
  int input_count() const { return node_.input_count(); }
  bool has_input(int index) const { return node_.input(index) != nullptr; }
  /// Throws Error{model} when the input is left out.
  const Value& input(int index) const;
  /// undefined when unknown or left out.
  DType dtype(int index) const;
  /// Null when the rank is unknown or the input is left out.
  const SymShape* shape(int index) const;
  /// The elements, when they are known before the run; else not defined. Never those of a variable.
  Tensor constant(int index) const;
  /// The elements of a constant i64/i32 input; nullopt when not known.
  std::optional<std::vector<std::int64_t>> constant_ints(int index) const;

  /// Without a shape: unknown rank.
  void set_output(int index, DType dtype, std::optional<SymShape> shape = std::nullopt);
  /// Output `index` gets type and shape of input `from`.
  void copy_type(int from, int index = 0);

  /// Throws Error{kind}; the text starts with the node's label.
  template <class... Args>
  [[noreturn]] void fail(ErrorKind kind, const Args&... args) const {
    graft::fail(kind, node_.label(), ": ", args...);
  }
  /// Throws Error{type} unless the inputs that are known have one element type.
  void require_same_dtype(std::initializer_list<int> inputs) const;
  /// Throws Error{shape} unless the rank, if known, is in [least, most].
  void require_rank(int index, int least, int most) const;

 private:
  Node& node_;
};

using Infer = void (*)(InferContext& context);

/// The shape that two shapes broadcast to. Throws Error{shape} where known dims do not broadcast.
SymShape broadcast(const InferContext& context, const SymShape& a, const SymShape& b);

/// Element-wise with broadcasting: joins the shapes of all inputs.
/// Throws Error{shape} where known dims do not broadcast.
std::optional<SymShape> broadcast_inputs(const InferContext& context);

/// Runs the op's inference and sets the output types. Unknown ops are left as they are.
/// Throws Error{shape} or Error{type} naming the node.
void infer(Node& node);

/// `value`'s elements when known before the run: an initializer that is not a variable.
Tensor constant_of(const Value* value);

// Ready-made inference functions.
/// Output 0 like input 0.
void infer_same(InferContext& context);
/// Broadcast of all inputs, element type of input 0 (all must agree).
void infer_broadcast(InferContext& context);
/// Broadcast of all inputs; bool.
void infer_broadcast_bool(InferContext& context);

}  // namespace graft
