#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/runtime/node_call.h"
#include "core/runtime/plan.h"

namespace graft {

/// What a segment is made for: a tensor's type, or that it is none.
struct DatumType {
  bool is_tensor = false;
  DType dtype = DType::undefined;
  Shape shape{};

  bool fits(const Datum& datum) const;
};

struct Segment;

/// A graph, or what remains of it, waiting for its inputs' types.
struct Stage {
  std::unique_ptr<Graph> graph;
  /// Which of the program's outputs each graph output is.
  std::vector<int> places;
  std::vector<std::unique_ptr<Segment>> segments;  // by recent use
  int depth = 0;
};

/// A stage for given types of its inputs. While it runs, data lie in slots: first the inputs, then
/// constants, the plan's outputs and the calls' outputs.
struct Segment {
  struct Call {
    NodeCall call;
    std::vector<int> reads;   // slots; -1 where left out
    std::vector<int> writes;  // slots; -1 where nobody reads the output
  };
  struct Constant {
    int slot;
    Tensor tensor;
  };
  struct Result {
    int slot;
    int place;        // among the program's outputs
    bool is_foreign;  // an input or a constant: to be copied
  };

  std::vector<DatumType> types;
  std::unique_ptr<Graph> graph;  // owns the nodes of `calls`
  int slot_count = 0;
  std::vector<Constant> constants;
  std::optional<Plan> plan;
  std::vector<int> plan_inputs;
  int first_plan_output = 0;
  std::vector<Call> calls;
  std::vector<Result> results;
  std::unique_ptr<Stage> rest;  // null when nothing remains
  std::vector<int> rest_inputs;

  bool accepts(std::span<const Datum> inputs) const;
  /// Fills the slots. Plan outputs are copied to the CPU.
  std::vector<Datum> run(std::span<const Datum> inputs);
};

/// The first node of an inference_graph that no plan holds; null if one plan holds all of it.
const Node* first_unplanned(const Graph& graph);

/// Binds the inputs, settles the graph, and divides its nodes into those that the plan holds, those
/// that are called after it, on the CPU, and the rest. Throws what planning throws.
std::unique_ptr<Segment> build_segment(const Stage& stage, std::span<const Datum> inputs,
                                       const PlanOptions& options);

}  // namespace graft
