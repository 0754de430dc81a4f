#include "tests/fuzz/target.h"

namespace graft::fuzz {

std::span<const Target> model_targets() {
  static constexpr Target kTargets[] = {{"pipeline", run_pipeline, pipeline_runs}};
  return kTargets;
}

}  // namespace graft::fuzz
