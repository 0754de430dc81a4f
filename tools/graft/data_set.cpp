#include "tools/graft/data_set.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/passes/pass.h"
#include "io/onnx.h"
#include "tools/graft/tensor_files.h"

namespace graft::cli {

namespace fs = std::filesystem;

std::vector<fs::path> data_sets(const fs::path& folder) {
  std::vector<fs::path> sets;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const bool has_name = entry.path().filename().string().starts_with("test_data_set_");
    if (entry.is_directory() && has_name) sets.push_back(entry.path());
  }
  std::ranges::sort(sets);
  return sets;
}

std::vector<NamedDatum> load_data(const fs::path& folder, const std::string& stem,
                                  const std::vector<Value*>& values) {
  std::vector<NamedDatum> data;
  for (std::size_t i = 0;; ++i) {
    const fs::path path = folder / (stem + std::to_string(i) + ".pb");
    if (!fs::exists(path)) return data;
    if (i >= values.size()) {
      fail(ErrorKind::argument, "the model has no value for ", path.string());
    }
    data.push_back(onnx::load_data(path, *values[i]));
  }
}

std::vector<Datum> feed(Model& model, const std::vector<NamedDatum>& data) {
  const std::vector<Value*> required = passes::required_inputs(model.graph());
  const std::vector<Value*>& places =
      data.size() == required.size() ? required : model.graph().inputs();
  std::map<const Value*, Datum> given;
  for (std::size_t i = 0; i < data.size(); ++i) {
    Value* target = data[i].name.empty() ? nullptr : model.graph().find(data[i].name);
    if (target == nullptr || !target->is_graph_input()) {
      if (i >= places.size()) {
        fail(ErrorKind::argument, "the model has ", places.size(),
             " inputs, and data are given of ", data.size());
      }
      target = places[i];
    }
    if (target->is_initializer()) {
      target->set_initializer(data[i].datum.tensor());
    } else {
      given[target] = data[i].datum;
    }
  }
  std::vector<Datum> inputs;
  for (const Value* input : required) {
    const auto at = given.find(input);
    if (at == given.end()) {
      fail(ErrorKind::argument, "no data are given of input '", input->name(), "'");
    }
    inputs.push_back(at->second);
  }
  return inputs;
}

namespace {

/// By the name of the file; names of inputs may hold what names of files may not.
std::vector<NamedDatum> load_by_name(const fs::path& folder, const Model& model) {
  std::vector<NamedDatum> data;
  for (const Value* input : model.graph().inputs()) {
    const fs::path stem = folder / file_stem(input->name());
    const fs::path npy = stem.string() + ".npy";
    const fs::path pb = stem.string() + ".pb";
    if (fs::exists(npy)) {
      data.push_back({input->name(), load_tensor_file(npy)});
    } else if (fs::exists(pb)) {
      data.push_back({input->name(), onnx::load_data(pb, *input).datum});
    }
  }
  return data;
}

}  // namespace

std::vector<NamedDatum> load_inputs(const fs::path& folder, const Model& model) {
  if (!fs::is_directory(folder)) fail(ErrorKind::io, folder.string(), ": no such folder");
  std::vector<NamedDatum> data = load_data(folder, "input_", model.graph().inputs());
  if (data.empty()) data = load_by_name(folder, model);
  const std::vector<fs::path> sets = data.empty() ? data_sets(folder) : std::vector<fs::path>();
  if (!sets.empty()) return load_inputs(sets.front(), model);
  if (data.empty() && !passes::required_inputs(model.graph()).empty()) {
    fail(ErrorKind::argument, folder.string(), ": no input_0.pb and no file of an input's name, ",
         file_stem(passes::required_inputs(model.graph()).front()->name()), ".npy or .pb");
  }
  return data;
}

}  // namespace graft::cli
