// What tests tell the emulated device. Nothing of it changes what a right program computes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace graft::emulated {

/// The order in which blocks, warps and the threads of a warp run. 0: one after the other, each
/// warp as far as it goes, which makes values appear that nobody waited for. Another seed: by lot,
/// which makes some come late. A right kernel gives the same bits in all of them.
void set_thread_order(std::uint64_t seed);

/// Which streams run meanwhile when one is waited for. 0: none that it does not wait for itself.
void set_stream_order(std::uint64_t seed);

/// How often the host has waited for all that a stream was given.
std::size_t stream_waits();

/// How many kernels have run; a call of a library counts as one.
std::size_t kernels_run();

/// How often bytes have been copied between the host and the device.
std::size_t copies_over_the_bus();

/// How often memory of the device, or pinned memory of the host, has been asked for.
std::size_t allocations();

/// How much the device holds; 8 GiB at first.
void set_memory_limit(std::size_t bytes);

}  // namespace graft::emulated
