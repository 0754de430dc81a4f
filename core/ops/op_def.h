#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/graph/graph.h"
#include "core/ops/gradient.h"
#include "core/ops/infer.h"
#include "core/ops/sample.h"

namespace graft {

/// A version of the op set in which the op first stood or last changed, and what changed then.
struct Since {
  int version;
  std::string_view change = "";
};

enum class Arity { required, optional, variadic };

struct Param {
  std::string_view name;
  Arity arity = Arity::required;
};

enum class AttributeType { integer, number, text, integers, numbers, texts, tensor, graph };

struct AttributeDef {
  std::string_view name;
  AttributeType type;
  bool required = false;
};

/// Which output may share memory with which input.
enum class AliasKind {
  view,      ///< always the same bytes under another shape: no kernel runs
  in_place,  ///< the kernel works when both are one buffer; the planner decides
  state,     ///< the output is the input's new content: an update of a variable
};

struct Alias {
  int output;
  int input;
  AliasKind kind;
};

/// Output 0 may take the memory of either of the first two inputs.
inline std::vector<Alias> in_place_of_either() {
  return {{0, 0, AliasKind::in_place}, {0, 1, AliasKind::in_place}};
}

/// In which layouts kernels of an op take its operands; row-major only, unless it says otherwise.
struct LayoutRule {
  enum class Kind {
    row_major,
    /// Each element is computed by itself: any layout that is the same for all operands. Kernels
    /// need not know: they see the shapes in the order of memory.
    elementwise,
    /// Images, all in one layout.
    together,
    /// Images, each in a layout of its own; those in channels-last order save the kernel a copy.
    each,
  };
  Kind kind = Kind::row_major;
  /// The operands meant; the others are row-major always. Elementwise: all outputs, and these
  /// inputs, or all without any.
  std::vector<int> inputs = {};
  std::vector<int> outputs = {};
};
inline constexpr LayoutRule kElementwise{LayoutRule::Kind::elementwise};

/// Rewrites the node, if it stands in the form of opset `from`, into the newest form; new nodes go
/// through the builder, which inserts before the node. The node may be left without uses: the pass
/// removes it then.
using Upgrade = void (*)(Node& node, std::int64_t from, Builder& builder);

/// Where bf16 serves an op in a step whose parameters are f32 (passes::compute_in_bf16).
struct MixedPrecision {
  enum class Kind {
    never,
    /// Sums many products, in f32: bf16 operands make it faster.
    product,
    /// The same where the device has a kernel of its own for bf16 operands: through f32 they would
    /// make it slower.
    product_of_kernel,
    /// Computes in bf16 where what it reads has been rounded to bf16 before: it has lost the digits
    /// already, and sums are f32.
    follows,
  };
  Kind kind = Kind::never;
  /// The inputs that become bf16; all without any.
  std::vector<int> inputs = {};
};
inline constexpr MixedPrecision kProduct{MixedPrecision::Kind::product};
inline constexpr MixedPrecision kFollows{MixedPrecision::Kind::follows};

/// Multiply-adds of one run of the node: those of its products. Nothing when a shape that they need
/// is not known. Throws Error{shape} if they overflow.
using MultiplyAdds = std::optional<std::int64_t> (*)(const Node& node);

/// From what random numbers follow.
enum class Draws {
  nothing,        ///< it draws none
  by_attributes,  ///< from attributes and RunState::step: a copy of the node draws the same
  by_node,        ///< from a stream of the node's own: a copy of it may draw others
};

/// Writes the node in ops of ONNX, so that other runtimes can run it; all shapes are known. Returns
/// one value an output, in the node's element types; an empty one where nobody reads it.
using Lowering = std::vector<Expr> (*)(const Node& node, Builder& builder);

/// The op that does what an update does with a gradient that is a product of matrices, and makes
/// that itself. It reads one factor in place of the gradient, and the other as its last input.
struct ProductForm {
  std::string_view op = "";  ///< internal; empty where there is none
  /// Whether the update adds a multiple of the gradient to the parameter and does no more. Null: it
  /// never does.
  bool (*only_adds)(const Node& update) = nullptr;
};

/// All that Graft knows about an op, in one place: the registry drives inference, autograd,
/// planning, tests, docs and `graft inspect`. Kernels register beside it, per device.
struct OpDef {
  std::string_view name;
  std::string_view domain = "";
  std::vector<Since> since;  ///< oldest first
  std::vector<Param> inputs;
  std::vector<Param> outputs;
  std::vector<AttributeDef> attributes = {};
  Infer infer;
  /// Runs between plans, by a dynamic kernel (core/ops/dynamic.h) or, if it has bodies, by the
  /// runtime: the shapes of its outputs depend on data, or it takes or gives strings or sequences.
  bool is_dynamic = false;
  Upgrade upgrade = nullptr;
  std::vector<Alias> aliases = {};
  LayoutRule layout = {};
  /// Inputs that usually hold trained parameters, to choose what trains by default.
  std::vector<int> weights = {};
  MixedPrecision mixed_precision = {};
  /// Null where no products of matrices are summed: the run takes as long as its memory does.
  MultiplyAdds multiply_adds = nullptr;
  Draws draws = Draws::nothing;
  /// Each element of the outputs is one of input 0, or of any input where the first is variadic,
  /// and which one does not depend on those elements.
  bool only_moves = false;
  /// No element of an input is read: its shape, and its type, say all.
  bool reads_only_shapes = false;
  /// One input and, by its rule, a gradient that is one element-wise op: fused ops may apply both
  /// to parts of their own results.
  bool is_activation = false;
  ProductForm product_form = {};
  /// Of an internal op: the same in ops of ONNX. Null where there is none.
  Lowering lower = nullptr;
  Backward backward;  ///< no default: each op says how it is differentiated, or why not
  Samples samples;    ///< an op without samples fails the sweep

  /// The newest version; 1 for internal ops.
  int newest() const { return since.empty() ? 1 : since.back().version; }
  /// Updates a variable, so it must run though nothing reads its outputs.
  bool updates_state() const;
};

}  // namespace graft
