#pragma once

#include <filesystem>
#include <memory>

#include "data/dataset.h"

namespace graft {

/// A folder of CIFAR-10 in its binary form, plain or .gz: as many `data_batch_*.bin` as are there,
/// in the order of their names, or `test_batch.bin`. A record is a label byte and 3072 pixel bytes
/// [3,32,32]: https://www.cs.toronto.edu/~kriz/cifar.html.
/// Input "image" f32[3,32,32] in [0, 1], target "label" i64[], 10 classes. Throws Error{io} if no
/// file is there, if one is not whole records, or if a label is above 9.
std::shared_ptr<Dataset> cifar10(const std::filesystem::path& folder, Split split);

}  // namespace graft
