#include "core/ops/registry.h"

namespace graft {
namespace {

std::vector<Sample> relayout_samples() {
  return {{"image", {{.shape = {2, 5, 3, 7}}}},     {"line", {{.shape = {3, 4, 9}}}},
          {"volume", {{.shape = {2, 3, 2, 3, 4}}}}, {"one_channel", {{.shape = {4, 1, 3, 3}}}},
          {"empty", {{.shape = {0, 3, 2, 2}}}},     {"many", {{.shape = {3, 33, 17, 19}}}}};
}

}  // namespace

/// Between layouts: what comes in one goes out in the other. The layout pass adds it to plans.
void register_relayout(OpRegistry& registry) {
  registry.add({.name = "Relayout",
                .domain = kInternalDomain,
                .inputs = {{"x"}},
                .outputs = {{"y"}},
                .infer = infer_same,
                .layout = {LayoutRule::Kind::each, {0}, {0}},
                .only_moves = true,
                .backward = NotDifferentiable{"layouts are chosen after differentiation"},
                .samples = relayout_samples});
}

}  // namespace graft
