#pragma once

#include <cstddef>
#include <vector>

#include "core/device/device.h"
#include "core/runtime/arena.h"
#include "core/tensor/tensor.h"

namespace graft {

/// Which bytes of a plan's arena are alive at each step, for PlanOptions::poison. All others hold
/// NaN bits. On the CPU under the address sanitizer they may not be touched either: a kernel that
/// goes past the end of an operand, or keeps a pointer too long, ends the program.
class DeadMemory {
 public:
  /// `workspace_bytes`: of each step.
  DeadMemory(const Arena& layout, const Tensor& arena, Device& device,
             const std::vector<std::size_t>& workspace_bytes);

  /// One run: at first nothing is alive, and when it ends all may be touched again, by who reads
  /// the outputs. Outlived by the DeadMemory.
  class Run {
   public:
    explicit Run(const DeadMemory& memory);
    ~Run();
    Run(const Run&) = delete;
    Run& operator=(const Run&) = delete;
    void before(std::size_t step) const;
    void after(std::size_t step) const;

   private:
    const DeadMemory& memory_;
  };

 private:
  struct Range {
    std::size_t offset;
    std::size_t bytes;
  };
  struct Change {
    std::vector<Range> born;
    std::vector<Range> dead;
  };
  std::byte* at_offset(std::size_t offset) const {
    return static_cast<std::byte*>(arena_.data()) + offset;
  }

  Tensor arena_;
  Device& device_;
  std::vector<Change> changes_;  // by step
};

}  // namespace graft
