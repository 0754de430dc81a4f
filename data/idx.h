#pragma once

#include <filesystem>

#include "core/tensor/tensor.h"

namespace graft {

/// Reads an IDX file, plain or gzip: the format of MNIST (http://yann.lecun.com/exdb/mnist). The
/// result is u8, i8, i16, i32, f32 or f64 with the file's dimensions.
/// Throws Error{io} unless the file is IDX and holds exactly the bytes its header declares.
Tensor read_idx(const std::filesystem::path& path);

}  // namespace graft
