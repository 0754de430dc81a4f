#pragma once

#include <cstdint>
#include <memory>

#include "data/dataset.h"

namespace graft {

/// The samples of a data set whose first input is an image f32[C,H,W], made [C,height,width] as
/// they are read: between the four nearest pixels by distance, corners of images on corners, as
/// torch.nn.functional.interpolate(mode="bilinear"). What is made smaller is not smoothed before.
/// Throws Error{argument} for a null data set or a side below 1, Error{shape} or Error{type} for
/// inputs that are no such images.
std::shared_ptr<Dataset> resized(std::shared_ptr<const Dataset> dataset, std::int64_t height,
                                 std::int64_t width);

}  // namespace graft
