#include "core/runtime/program.h"

#include <numeric>

#include "core/base/at.h"
#include "core/runtime/recent.h"
#include "core/runtime/segment.h"

namespace graft {
namespace {

/// Segments follow one another, so each more level of shapes would multiply what is kept.
constexpr int kMostSegments = 64;

}  // namespace

struct Program::State {
  Stage first;
  PlanOptions options;
  int segment_count = 0;

  Segment& segment_for(Stage& stage, std::span<const Datum> inputs) {
    const auto accepts = [&](const auto& segment) { return segment->accepts(inputs); };
    if (auto* const found = find_recent(stage.segments, accepts)) return **found;
    auto built = build_segment(stage, inputs, options);
    ++segment_count;
    return *add_recent(stage.segments, std::move(built));
  }
};

Program::Program(std::unique_ptr<Graph> graph, const PlanOptions& options)
    : state_(std::make_unique<State>()) {
  state_->options = options;
  state_->first.places.resize(graph->outputs().size());
  std::iota(state_->first.places.begin(), state_->first.places.end(), 0);
  state_->first.graph = std::move(graph);
}

Program::~Program() = default;
Program::Program(Program&&) noexcept = default;
Program& Program::operator=(Program&&) noexcept = default;

std::vector<Datum> Program::run(std::span<const Datum> inputs) {
  if (state_->segment_count > kMostSegments) {
    state_->first.segments.clear();
    state_->segment_count = 0;
  }
  std::vector<Datum> results(state_->first.places.size());
  std::vector<Datum> data(inputs.begin(), inputs.end());
  for (Stage* stage = &state_->first; stage != nullptr;) {
    Segment& segment = state_->segment_for(*stage, data);
    const std::vector<Datum> slots = segment.run(data);
    for (const Segment::Result& result : segment.results) {
      const Datum& datum = at(slots, result.slot);
      at(results, result.place) =
          result.is_foreign && datum.is_tensor() ? Datum(datum.tensor().clone()) : datum;
    }
    std::vector<Datum> next;
    for (const int slot : segment.rest_inputs) next.push_back(at(slots, slot));
    data = std::move(next);
    stage = segment.rest.get();
  }
  return results;
}

}  // namespace graft
