#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "core/tensor/tensor.h"

// NumPy's array files. Source: numpy/lib/_format_impl.py, versions 1 to 3.
namespace graft::npy {

/// Reads little-endian numbers, bools and complex numbers in C or Fortran order; the tensor is
/// row-major. Throws Error{io} if the bytes are malformed, too few or too many, Error{unsupported}
/// for other element types.
Tensor parse(std::string_view bytes);
Tensor load(const std::filesystem::path& path);

/// Version 1, C order. Throws Error{type} for types that NumPy does not have (bf16, strings, types
/// below a byte).
std::string serialize(const Tensor& tensor);
/// Writes the tensor as a file that appears complete or not at all.
void save(const std::filesystem::path& path, const Tensor& tensor);

}  // namespace graft::npy
