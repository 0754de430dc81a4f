#pragma once

#include <functional>
#include <memory>

#include "core/device/communicator.h"

namespace graft::test {

/// Calls `rank` on as many threads, with the communicator of each: the ranks of this process. One
/// that throws while others wait for it would let them wait for ever, so that the process ends.
void run_ranks(int size, const std::function<void(std::shared_ptr<Communicator>)>& rank);

}  // namespace graft::test
