#include "core/ops/builder.h"
#include "core/ops/kernels/window.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

struct BlockAttributes {
  std::int64_t size;
  /// Depth is ordered column, row, depth; else depth, column, row.
  bool depth_last;
};

BlockAttributes read_block(const Node& node) {
  if (!node.attributes.has("blocksize")) {
    fail(ErrorKind::model, node.label(), ": attribute blocksize is missing");
  }
  const std::int64_t size = node.attributes.get_int("blocksize", 1);
  if (size < 1 || size > kMostPerAxis) {
    fail(ErrorKind::shape, node.label(), ": blocksize is ", size, ", wanted 1 to ", kMostPerAxis);
  }
  const std::string mode = node.attributes.get_string("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") {
    fail(ErrorKind::model, node.label(), ": mode is '", mode, "', wanted DCR or CRD");
  }
  return {size, mode == "CRD"};
}

/// Unknown when `dim` is.
Dim divided(const InferContext& context, const Dim& dim, std::int64_t by, int axis) {
  if (!dim.is_known()) return by == 1 ? dim : Dim();
  if (dim.value() % by != 0) {
    context.fail(ErrorKind::shape, "axis ", axis, " of ", dim, " elements is no multiple of ", by);
  }
  return dim.value() / by;
}

Dim multiplied(const Dim& dim, std::int64_t by) {
  if (!dim.is_known()) return by == 1 ? dim : Dim();
  return checked_multiply(dim.value(), by);
}

void infer_depth_to_space(InferContext& context) {
  const std::int64_t block = read_block(context.node()).size;
  context.require_rank(0, 4, 4);
  const SymShape* const x = context.shape(0);
  if (x == nullptr) return context.set_output(0, context.dtype(0));
  context.set_output(0, context.dtype(0),
                     SymShape{(*x)[0], divided(context, (*x)[1], block * block, 1),
                              multiplied((*x)[2], block), multiplied((*x)[3], block)});
}

void infer_space_to_depth(InferContext& context) {
  const std::int64_t block = read_block(context.node()).size;
  context.require_rank(0, 4, 4);
  const SymShape* const x = context.shape(0);
  if (x == nullptr) return context.set_output(0, context.dtype(0));
  context.set_output(
      0, context.dtype(0),
      SymShape{(*x)[0], multiplied((*x)[1], block * block), divided(context, (*x)[2], block, 2),
               divided(context, (*x)[3], block, 3)});
}

std::vector<Expr> expand_depth_to_space(const Node& node, Builder& builder) {
  const auto [block, depth_last] = read_block(node);
  const Expr x = builder.expr(node.input(0));
  const Shape from = x.shape();
  const Shape to = node.output(0)->known_shape();
  const Shape parts = depth_last ? Shape{from[0], to[1], block, block, from[2], from[3]}
                                 : Shape{from[0], block, block, to[1], from[2], from[3]};
  const std::vector<std::int64_t> order = depth_last ? std::vector<std::int64_t>{0, 1, 4, 2, 5, 3}
                                                     : std::vector<std::int64_t>{0, 3, 4, 1, 5, 2};
  return {reshape(transpose(reshape(x, parts), order), to)};
}

std::vector<Expr> expand_space_to_depth(const Node& node, Builder& builder) {
  const auto [block, depth_last] = read_block(node);
  const Expr x = builder.expr(node.input(0));
  const Shape from = x.shape();
  const Shape to = node.output(0)->known_shape();
  const Shape parts{from[0], from[1], to[2], block, to[3], block};
  const std::vector<std::int64_t> order = depth_last ? std::vector<std::int64_t>{0, 1, 3, 5, 2, 4}
                                                     : std::vector<std::int64_t>{0, 3, 5, 1, 2, 4};
  return {reshape(transpose(reshape(x, parts), order), to)};
}

Attributes block_attributes(int size, const char* mode) {
  return {{"blocksize", size}, {"mode", mode}};
}

std::vector<Sample> depth_to_space_samples() {
  return {
      {"default", {{{2, 8, 2, 3}}}, {{"blocksize", 2}}},
      {"crd", {{{2, 8, 2, 3}}}, block_attributes(2, "CRD")},
      {"three", {{{1, 9, 1, 2}}}, block_attributes(3, "DCR")},
      {"one", {{{2, 3, 2, 2}}}, block_attributes(1, "CRD")},
      {"of_empty", {{{0, 4, 2, 2}}}, {{"blocksize", 2}}},
      {"integers",
       {{.shape = {1, 4, 2, 1}, .low = -9, .high = 9, .dtype = DType::i64}},
       {{"blocksize", 2}}},
  };
}

std::vector<Sample> space_to_depth_samples() {
  return {
      {"default", {{{2, 2, 4, 6}}}, {{"blocksize", 2}}},
      {"crd", {{{2, 2, 4, 6}}}, block_attributes(2, "CRD")},
      {"three", {{{1, 1, 3, 6}}}, block_attributes(3, "DCR")},
      {"one", {{{2, 3, 2, 2}}}, block_attributes(1, "CRD")},
      {"of_empty", {{{2, 1, 0, 2}}}, {{"blocksize", 2}}},
  };
}

}  // namespace

/// DepthToSpace and SpaceToDepth: a transposition between two reshapes.
void register_space_depth(OpRegistry& registry) {
  const std::vector<AttributeDef> attributes{{"blocksize", AttributeType::integer, true},
                                             {"mode", AttributeType::text}};
  registry.add({.name = "DepthToSpace",
                .since = {{1}, {11, "mode"}, {13}, {28}},
                .inputs = {{"input"}},
                .outputs = {{"output"}},
                .attributes = attributes,
                .infer = infer_depth_to_space,
                .only_moves = true,
                .backward = Decomposition{expand_depth_to_space},
                .samples = depth_to_space_samples});
  registry.add({.name = "SpaceToDepth",
                .since = {{1}, {13}, {28, "mode"}},
                .inputs = {{"input"}},
                .outputs = {{"output"}},
                .attributes = attributes,
                .infer = infer_space_to_depth,
                .only_moves = true,
                .backward = Decomposition{expand_space_to_depth},
                .samples = space_to_depth_samples});
}

}  // namespace graft
