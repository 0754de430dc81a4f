#include "tests/fuzz/target.h"

namespace graft::fuzz {

std::span<const Target> model_targets() {
  static constexpr Target kTargets[] = {
      {"command_line", run_command_line},
      {"pipeline", run_pipeline, true},
  };
  return kTargets;
}

}  // namespace graft::fuzz
