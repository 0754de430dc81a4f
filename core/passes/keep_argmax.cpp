#include "core/passes/pass.h"
#include "core/passes/pool_window_internal.h"
#include "core/passes/rewrite_passes.h"

namespace graft::passes {
namespace {
namespace argmax_pooling {

/// A byte names an element of the window.
bool fits(const Node& pool) {
  constexpr std::int64_t kMostElements = 256;
  return has_small_window(pool, kMostElements);
}

const Pattern x = any();

using Ints = std::vector<std::int64_t>;

const std::vector<Rewrite> kRewrites{
    {.name = "keep_argmax",
     .match = op("MaxPool", {x}, fits),
     .to =
         [](const Match& m) {
           Attributes attributes = m.root().attributes;
           attributes.erase("storage_order");
           return call_multi("MaxPoolWithArgmax", kInternalDomain, {m[x]}, 2, std::move(attributes))
               .front();
         },
     .samples = {{"halves",
                  [](SampleNet& net) {
                    return call("MaxPool", {net.input({2, 3, 4, 6})},
                                {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}});
                  }},
                 {"padded",
                  [](SampleNet& net) {
                    return call("MaxPool", {net.input({1, 2, 5, 5})},
                                {{"kernel_shape", Ints{3, 3}},
                                 {"pads", Ints{1, 1, 1, 1}},
                                 {"storage_order", 1}});
                  }},
                 {"one_axis",
                  [](SampleNet& net) {
                    return call("MaxPool", {net.input({2, 3, 9})},
                                {{"kernel_shape", Ints{3}}, {"ceil_mode", 1}});
                  }}}},
};

}  // namespace argmax_pooling
}  // namespace

std::span<const Rewrite> keep_argmax_rewrites() {
  return argmax_pooling::kRewrites;
}

bool keep_argmax(Graph& graph) {
  return rewrite(graph, argmax_pooling::kRewrites);
}

}  // namespace graft::passes
