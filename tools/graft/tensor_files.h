#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/tensor/datum.h"

namespace graft::cli {

/// Names in models may hold anything, "../" too: what is no plain character becomes '_'.
std::string file_stem(const std::string& name);

/// A tensor from a .npy or .pb file. Throws Error{argument} for another ending, Error{io} or
/// Error{model} if the file is not there or damaged.
Tensor load_tensor_file(const std::filesystem::path& path);

/// The tensors that arguments of the form NAME=FILE name. Throws Error{argument} for another form
/// or a name that comes twice.
std::map<std::string, Tensor> load_named_tensors(const std::vector<std::string>& arguments);

/// The same for inputs of `graph`, which may be sequences, optionals and maps: .pb files then.
std::map<std::string, Datum> load_named_data(const std::vector<std::string>& arguments,
                                             const Graph& graph);

}  // namespace graft::cli
