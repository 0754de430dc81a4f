#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "autograd/loss.h"
#include "core/graph/model.h"
#include "core/tensor/datum.h"

namespace graft::cli {

/// What `bench` is told of a batch.
struct BenchDataArguments {
  std::optional<std::int64_t> batch;
  std::vector<std::string> files;  ///< NAME=FILE
  std::string folder;
  std::vector<std::string> targets;  ///< files, in the order of what the loss judges
  /// The output that a loss judges which names none; empty: the first.
  std::string output;

  bool has_files() const { return !files.empty() || !folder.empty(); }
};

/// One batch: what the files hold, or made-up numbers of the right type.
struct BenchData {
  std::vector<Datum> inputs;
  std::vector<Tensor> targets;   ///< none for inference
  std::vector<ValueType> types;  ///< of the inputs
  /// The model's graph for these inputs, its nodes as the file has them; null where an input is no
  /// tensor.
  std::unique_ptr<Graph> graph;

  /// The inputs. Throws Error{type} where one is no tensor.
  std::vector<Tensor> tensors() const;
};

/// A model whose files of data are of inputs with default values gets these as its new ones. With a
/// loss, there are targets, too: those of the files or, made up, one for each output that it names.
/// Throws Error{argument} for names that the model does not have and
/// for inputs without data, Error{shape} where made-up data would need a shape that is not known.
BenchData make_bench_data(const BenchDataArguments& arguments, Model& model, const Loss* loss);

}  // namespace graft::cli
