#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "io/named_tensor.h"

// NumPy's archives of arrays: a zip file with a .npy file for each. Source: numpy.savez; PKWARE
// APPNOTE 6.3.10.
namespace graft::npz {

/// All arrays in the order of the archive, named without ".npy"; stored or deflated, zip64 or not.
/// Throws Error{io} if the archive is damaged or says more than its size can hold,
/// Error{unsupported} for encrypted members and other methods.
/// `wanted`, when given, chooses by name what is read at all.
std::vector<NamedTensor> load(const std::filesystem::path& path,
                              const std::function<bool(const std::string&)>& wanted = {});

/// The names of all arrays, in order; their content is not read.
std::vector<std::string> names(const std::filesystem::path& path);

/// Writes a stored archive that appears complete or not at all. Throws Error{argument} if a name is
/// empty or there twice, Error{type} as npy::serialize does.
void save(const std::filesystem::path& path, std::span<const NamedTensor> tensors);

}  // namespace graft::npz
