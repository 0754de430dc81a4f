// The threads of one block on one thread of the process: a fiber each, 32 a warp. What a card
// leaves undefined ends the kernel with a Fault here.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <source_location>
#include <stdexcept>

namespace graft::emulated {

/// A kernel did what no kernel may do.
class Fault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Calls `thread` for every thread of every block. Throws Fault.
void run_grid(dim3 grid, dim3 block, std::size_t shared_bytes, const std::function<void()>& thread);

// For the thread that runs.
int lane();
void* dynamic_shared();
void sync_block(const std::source_location& where);
void sync_warp(unsigned mask, const std::source_location& where);
/// Gives `value` to the other threads of the warp and takes that of `from_lane`.
void exchange(unsigned mask, void* value, std::size_t bytes, int from_lane,
              const std::source_location& where);
void check_alignment(const void* address, std::size_t alignment);

}  // namespace graft::emulated
