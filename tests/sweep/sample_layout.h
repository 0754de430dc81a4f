#pragma once

#include <vector>

#include "core/base/layout.h"
#include "core/ops/op_def.h"
#include "tests/sweep/sample_graph.h"

namespace graft::test {

/// The elements of `tensor` [N, C, spatial...] in the order of another layout, under its shape.
Tensor relaid(const Tensor& tensor, Layout from, Layout to);

/// The operands of the sample that the layout rule means and whose bytes depend on the layout.
/// Empty when broadcasting keeps an elementwise op row-major.
std::vector<Value*> images_of(const SampleGraph& built, const LayoutRule& rule);

/// The node's inputs, row-major in the sample, in the order of their values' layouts.
std::vector<Tensor> inputs_as_laid_out(const SampleGraph& built);

/// Brings those operands into channels-last order; false where none is in another.
bool lay_in_rows(SampleGraph& built, const LayoutRule& rule);

}  // namespace graft::test
