#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/device/device.h"
#include "core/graph/model.h"
#include "core/runtime/bound_run.h"
#include "core/tensor/datum.h"

namespace graft {

struct SessionOptions {
  Device* device = &cpu();
  Fallback fallback = Fallback::none;
  /// The model's weights change between runs (it is being trained, or Session::set_weights):
  /// nothing computed from float initializers but scalars and scales of Resize is folded.
  bool weights_change = false;
  /// What `run` returns instead of the model's outputs: names of values anywhere in its graph, or
  /// of nodes, as edit::truncate takes them. Empty: the model's outputs.
  std::vector<std::string> outputs{};
};

/// Inference: runs a model as it is in memory, sharing its weights. What follows from weights alone
/// is computed once: of a model that is trained meanwhile a Session needs
/// SessionOptions::weights_change, or its results are of neither the old weights nor the new. Plans
/// are built for each new set of input shapes and kept; where a shape depends on data (NonZero, the
/// target of a Reshape that is computed or given as an input, a Loop), what follows is planned once
/// it is known. Safe to use from several threads; runs take turns, but for bound ones.
class Session {
 public:
  /// Copies the graph. Throws Error{unsupported} that lists the ops that Graft does not know, and
  /// Error{argument} if SessionOptions::outputs names nothing, with close names, or the device is
  /// null.
  explicit Session(const Model& model, const SessionOptions& options = {});
  ~Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;

  /// Inputs without a default value, and outputs, in the model's order.
  const std::vector<std::string>& input_names() const;
  const std::vector<std::string>& output_names() const;

  /// One tensor an input name, in any order of names; returns copies on the CPU in output order.
  /// Throws Error{argument} for a missing or unknown name, Error{shape} or Error{type} if one does
  /// not fit the model.
  std::vector<Tensor> run(const std::map<std::string, Tensor>& inputs);
  /// The same, inputs in the model's order. Throws Error{type} if an output is no tensor.
  std::vector<Tensor> run(const std::vector<Tensor>& inputs);
  std::vector<Tensor> run(std::initializer_list<Tensor> inputs) {
    return run(std::vector<Tensor>(inputs));
  }
  /// The same for models that take or give sequences, optionals and maps.
  std::vector<Datum> run_data(const std::vector<Datum>& inputs);
  std::vector<Datum> run_data(std::initializer_list<Datum> inputs) {
    return run_data(std::vector<Datum>(inputs));
  }
  std::vector<Datum> run_data(const std::map<std::string, Datum>& inputs);

  /// A run of its own on these inputs, in the model's order, whose results go to these outputs, in
  /// the session's order; without any, to new tensors (BoundRun::outputs). Runs that are bound
  /// share the weights, what was made of them, and nothing else, so each thread can have one.
  /// On a card all lie there: tensors that it made, or views of memory of it.
  /// Throws as `run`; Error{argument} if an output shares bytes with another tensor, or starts
  /// where a card's kernels cannot read; Error{shape} or Error{device} if a tensor is not what the
  /// plan takes, or not where it says; Error{unsupported} naming the node if shapes depend on data.
  BoundRun bind(const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs = {});

  /// Copies other elements into weights, by name, for all runs from the next on, also for those
  /// that are bound, which must not run meanwhile. Nothing is planned anew. The model shares its
  /// weights with the session, so it has them too. Wants SessionOptions::weights_change. Throws
  /// Error{argument} for a name that is no float initializer or is a scalar, Error{shape} if type
  /// or shape differ; then no weight has changed.
  void set_weights(const std::map<std::string, Tensor>& weights);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace graft
