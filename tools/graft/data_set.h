#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/graph/model.h"
#include "io/named_tensor.h"

namespace graft::cli {

/// The folders test_data_set_* in `folder`, by name.
std::vector<std::filesystem::path> data_sets(const std::filesystem::path& folder);

/// <stem>0.pb, <stem>1.pb, ... in the folder, as far as there are files: data of the kinds that the
/// values have. Throws Error{argument} for more files than values.
std::vector<NamedDatum> load_data(const std::filesystem::path& folder, const std::string& stem,
                                  const std::vector<Value*>& values);

/// Gives the model's inputs the data: those which are named like an input by name, others by place.
/// An input with a default value takes the tensor as its new default.
/// Returns what the required inputs get, in order. Throws Error{argument} naming one that gets
/// nothing.
std::vector<Datum> feed(Model& model, const std::vector<NamedDatum>& data);

/// The inputs that lie in a folder: input_0.pb, input_1.pb, ... in the model's order, or one
/// NAME.npy or NAME.pb an input; or those of its first test_data_set_*. Throws Error{argument} if
/// there are none, and as io does.
std::vector<NamedDatum> load_inputs(const std::filesystem::path& folder, const Model& model);

}  // namespace graft::cli
