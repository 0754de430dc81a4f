#pragma once

#include <cstddef>

namespace graft::emulated {

/// Device memory, which host code cannot touch: it is mapped without access except while a `Visit`
/// exists. What is allocated holds 0xff, and ends next to a page that nobody can touch.
///
/// Null when the limit is reached.
void* allocate_on_device(std::size_t bytes);
/// False for what is no allocation.
bool free_on_device(void* memory);
/// Whether the byte at that address is part of an allocation.
bool is_on_device(const void* address);
std::size_t free_device_bytes();
std::size_t all_device_bytes();

/// Throws Fault if somebody wrote between the end of an allocation and the next multiple of 256.
void check_ends();

/// While one exists, this process is the device.
class Visit {
 public:
  Visit();
  ~Visit();
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;
};

/// While one exists within a visit, this process is the host again.
class Leave {
 public:
  Leave();
  ~Leave();
  Leave(const Leave&) = delete;
  Leave& operator=(const Leave&) = delete;
};

}  // namespace graft::emulated
