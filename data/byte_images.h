#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/tensor/tensor.h"
#include "data/dataset.h"

namespace graft {

/// Images that stay in memory as bytes and are scaled to floats in [0, 1] when read: 4 times
/// smaller than floats. Input "image" f32[C,H,W], target "label" i64[].
/// `images`: u8[N,C,H,W]; `labels`: u8[N], each below class_names.size(); `source` (a file or
/// folder) starts the messages. Throws Error{io} if they do not fit each other.
std::shared_ptr<Dataset> byte_images(const Tensor& images, const Tensor& labels,
                                     std::vector<std::string> class_names,
                                     const std::string& source);

}  // namespace graft
