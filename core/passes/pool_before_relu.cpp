#include <algorithm>

#include "core/passes/pass.h"
#include "core/passes/rewrite_passes.h"

namespace graft::passes {
namespace {
namespace pooling_before_relu {

/// Every window holds elements of the image alone: none is empty, and padding, which never wins,
/// is not compared with what the Relu makes 0.
bool pools_without_padding(const Node& pool) {
  const Attributes& attributes = pool.attributes;
  const std::string padding = attributes.get_string("auto_pad", "NOTSET");
  return pool.output(1) == nullptr && (padding == "NOTSET" || padding == "VALID") &&
         attributes.get_int("ceil_mode", 0) == 0 &&
         std::ranges::all_of(attributes.get_ints("pads", {}),
                             [](std::int64_t pad) { return pad == 0; });
}

// What stands behind a normalization becomes part of that.
const Pattern image = op("Conv");

Results sample(SampleNet& net, const Shape& x, const Attributes& window) {
  std::vector<std::int64_t> kernel(static_cast<std::size_t>(x.rank()), 1);
  kernel[0] = 3;
  kernel[1] = x[1];
  const Expr conv = call("Conv", {net.input(x), net.input(Shape(kernel))});
  return call("MaxPool", {call("Relu", {conv})}, window);
}

using Ints = std::vector<std::int64_t>;

const std::vector<Rewrite> kRewrites{
    {.name = "pool_before_relu",
     .match = op("MaxPool", {once(op("Relu", {image}))}, pools_without_padding),
     .to =
         [](const Match& m) {
           return call("Relu", {call("MaxPool", {m[image]}, m.root().attributes)});
         },
     .samples =
         {{"halves",
           [](SampleNet& net) {
             return sample(net, {2, 2, 6, 4},
                           {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}});
           }},
          {"overlapping",
           [](SampleNet& net) {
             return sample(net, {1, 2, 5, 5},
                           {{"kernel_shape", Ints{3, 3}}, {"pads", Ints{0, 0, 0, 0}}});
           }},
          {"one_axis",
           [](SampleNet& net) {
             return sample(net, {2, 3, 9}, {{"kernel_shape", Ints{2}}, {"auto_pad", "VALID"}});
           }}}},
};

}  // namespace pooling_before_relu
}  // namespace

std::span<const Rewrite> pool_before_relu_rewrites() {
  return pooling_before_relu::kRewrites;
}

bool pool_before_relu(Graph& graph) {
  return rewrite(graph, pooling_before_relu::kRewrites);
}

}  // namespace graft::passes
