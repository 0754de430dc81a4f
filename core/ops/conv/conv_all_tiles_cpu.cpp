#include "core/ops/conv/conv_tiles.h"

namespace graft {

/// Behind oneDNN: what it takes is its own.
void register_conv_all_tiles_cpu(KernelRegistry& registry) {
  register_conv_by_tiles<TilesUse::anywhere>(registry, "all_tiles");
}

}  // namespace graft
