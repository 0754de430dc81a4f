// A launch costs a card as much as a small kernel takes, and a bias of a convolution and a Relu are
// two of them, with a third for the gradient: a pool between them does it all while it writes.
#include "core/passes/pass.h"
#include "core/passes/pool_window_internal.h"
#include "core/passes/rewrite_passes.h"

namespace graft::passes {
namespace {
namespace pool_fusion {

/// A byte names an element of the window, or none.
bool fits(const Node& pool) {
  constexpr std::int64_t kMostElements = 255;
  return has_small_window(pool, kMostElements);
}

const Pattern conv = op("Conv");
const Pattern pool = op("MaxPool", {once(conv)}, fits);

/// The largest number stays the largest when all of its channel get the same added; the pool adds
/// it once a window.
Results in_pool(const Match& m) {
  const Node& made_by = m.node(conv);
  const auto input = [&](int index) { return m.builder().expr(made_by.input(index)); };
  Attributes attributes = m.node(pool).attributes;
  attributes.erase("storage_order");
  attributes.set({"relu", 1});
  std::vector<Expr> inputs{call("Conv", {input(0), input(1)}, made_by.attributes)};
  if (made_by.input(2) != nullptr) inputs.push_back(input(2));
  return call_multi("MaxPoolWithArgmax", kInternalDomain, inputs, 2, std::move(attributes)).front();
}

Results sample(SampleNet& net, const Shape& x, bool has_bias, const Attributes& window) {
  std::vector<std::int64_t> kernel(static_cast<std::size_t>(x.rank()), 1);
  kernel[0] = 3;
  kernel[1] = x[1];
  std::vector<Expr> inputs{net.input(x), net.input(Shape(kernel))};
  if (has_bias) inputs.push_back(net.input({3}));
  return call("Relu", {call("MaxPool", {call("Conv", inputs)}, window)});
}

using Ints = std::vector<std::int64_t>;

const std::vector<Rewrite> kRewrites{
    {.name = "relu_in_pool",
     .match = op("Relu", {once(pool)}),
     .where =
         [](const Match& m) {
           const DType dtype = m.result()->dtype();
           return dtype == DType::f32 || dtype == DType::f64;
         },
     .to = in_pool,
     .samples = {{"bias",
                  [](SampleNet& net) {
                    return sample(net, {2, 2, 6, 4}, true,
                                  {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}});
                  }},
                 {"no_bias",
                  [](SampleNet& net) {
                    return sample(net, {2, 3, 9}, false, {{"kernel_shape", Ints{3}}});
                  }},
                 {"padded",
                  [](SampleNet& net) {
                    return sample(net, {1, 2, 5, 5}, true,
                                  {{"kernel_shape", Ints{3, 3}},
                                   {"pads", Ints{1, 1, 1, 1}},
                                   {"storage_order", 1}});
                  }}}},
};

}  // namespace pool_fusion
}  // namespace

std::span<const Rewrite> fuse_pools_rewrites() {
  return pool_fusion::kRewrites;
}

bool fuse_pools(Graph& graph) {
  return rewrite(graph, pool_fusion::kRewrites);
}

}  // namespace graft::passes
