#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/device/communicator.h"
#include "core/graph/model.h"
#include "data/dataset.h"

namespace graft::test {

/// So many images of 1x6x6 in three classes.
std::shared_ptr<const Dataset> images(std::int64_t count);

/// A convolution and a linear layer for them. `noisy`: with BatchNormalization and Dropout, by
/// which ranks differ.
Model small_net(bool noisy, std::uint64_t seed = 1);

/// A rank's part of a batch of 16, another one for each step.
Batch part(int step, const Communicator& ranks);

/// Whether rank 0 holds the same bits; all ranks ask.
bool is_rank_0s(const Tensor& tensor, Communicator& ranks);

/// Expects that they differ by so much at most, relative to numbers above 1.
void expect_near(const std::vector<Tensor>& found, const std::vector<Tensor>& wanted,
                 double tolerance);

}  // namespace graft::test
