#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "autograd/loss.h"
#include "core/graph/model.h"
#include "core/passes/pass_log.h"
#include "tools/graft/cost.h"
#include "train/advice.h"

namespace graft::cli {

/// What `graft inspect` is asked.
struct InspectArguments {
  std::string model;
  std::optional<std::int64_t> batch;
  /// The output that is judged; empty: the first.
  std::string output;
  /// Shapes of inputs whose dims the file leaves open, by name.
  std::map<std::string, Shape> shapes;
  std::string loss = "auto";
  std::string optimizer = "sgd";
  /// Show what passes do; if not empty, the graph behind this one.
  std::optional<std::string> passes;
  bool layers = false;
  bool json = false;
};

/// All that is found out about a model; empty or absent where it cannot be.
struct Findings {
  Model model;
  std::map<std::string, std::int64_t> ops;
  std::vector<std::string> unknown_ops;
  std::vector<const Value*> trainable;                       // of `newest`
  std::vector<std::pair<const Value*, std::string>> frozen;  // of `newest`, and why
  Model separated;                                           // as it trains
  Model newest;
  std::unique_ptr<Graph> bound;  // `newest` for one batch
  std::string judged;
  std::map<std::string, std::vector<std::string>> blockers;  // by output
  std::vector<Advice> advice;
  std::int64_t batch = 1;
  std::optional<std::int64_t> macs;
  Loss loss;
  std::optional<StepMemory> memory;
  /// Why costs are not known.
  std::string obstacle;
  /// Where shapes of inputs are missing, the options that would say them: "--shape x=Nx3xH".
  std::string shapes_to_say;
  /// Of a training step, and of what a Session runs; only where passes are asked for.
  passes::PassLog training;
  passes::PassLog inference;

  /// Nodes that stop gradients on the way to the judged output.
  std::vector<std::string> stops() const;
  /// Whether some output can be trained.
  bool can_train() const;
};

/// Throws what reading the file throws, and Error{argument} for unknown names.
Findings find(const InspectArguments& arguments);

}  // namespace graft::cli
