#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/shape.h"
#include "core/ops/kernel.h"

namespace graft {

/// Lays out pieces of a workspace.
class WorkspaceLayout {
 public:
  /// The offset in bytes of `count` elements. Throws Error{shape} on overflow.
  template <class T>
  std::size_t reserve(std::int64_t count) {
    return reserve_bytes(
        static_cast<std::size_t>(checked_multiply(count, static_cast<std::int64_t>(sizeof(T)))));
  }
  std::size_t reserve_bytes(std::size_t bytes) {
    const std::size_t offset = bytes_;
    bytes_ += (bytes + Device::kAlignment - 1) / Device::kAlignment * Device::kAlignment;
    return offset;
  }
  std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_ = 0;
};

/// The piece at `offset`.
template <class T>
T* workspace_at(const KernelArgs& args, std::size_t offset) {
  return reinterpret_cast<T*>(static_cast<std::byte*>(args.workspace) + offset);
}

}  // namespace graft
