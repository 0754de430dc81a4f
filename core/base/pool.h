#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace graft {

/// Memory for the many small pieces that one owner holds, such as the nodes of a graph. Those of
/// one size lie one behind the other in the order in which they are asked for, but where one was
/// given back: who walks over them later finds the next one near, where a heap would have strewn
/// them. A pool of some megabytes lies in large pages. What is given back is kept for pieces of the
/// same size, until the pool dies; larger ones are the heap's. Not for use by two threads at once.
class Pool {
 public:
  /// Where pieces start: at a multiple of it.
  static constexpr std::size_t kAlignment = alignof(std::max_align_t);

  Pool() = default;
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  /// Not initialised.
  void* allocate(std::size_t bytes);
  /// `bytes`: as many as were asked for.
  void deallocate(void* piece, std::size_t bytes);

 private:
  static constexpr std::size_t kLargest = 320;

  struct Free {
    Free* next;
  };
  /// Those of one size.
  struct Pieces {
    Free* free = nullptr;
    std::byte* next = nullptr;  ///< the first that nobody has had yet
    std::uint32_t left = 0;     ///< of those
    std::uint32_t made = 0;
  };

  struct Freed {
    void operator()(std::byte* block) const;
  };

  std::byte* keep(void* block);
  std::byte* new_block(std::size_t bytes);
  void add_block(Pieces& pieces, std::size_t bytes);

  std::array<Pieces, kLargest / kAlignment> pieces_{};  // of 1, 2, ... times the alignment
  std::vector<std::unique_ptr<std::byte, Freed>> blocks_;
  std::size_t of_heap_ = 0;          // bytes of blocks
  std::byte* large_page_ = nullptr;  // the rest of the last one
  std::size_t large_page_left_ = 0;
};

/// Lets a standard container take its memory from a pool, which outlives it.
template <class T>
class PoolAllocator {
 public:
  using value_type = T;

  PoolAllocator(Pool& pool) : pool_(&pool) {}  // NOLINT(google-explicit-constructor): {pool}
  template <class Other>
  PoolAllocator(const PoolAllocator<Other>& other)  // NOLINT(google-explicit-constructor)
      : pool_(&other.pool()) {}

  T* allocate(std::size_t count) {
    static_assert(alignof(T) <= Pool::kAlignment);
    return static_cast<T*>(pool_->allocate(count * kBytes));
  }
  void deallocate(T* first, std::size_t count) { pool_->deallocate(first, count * kBytes); }
  Pool& pool() const { return *pool_; }

  template <class Other>
  friend bool operator==(const PoolAllocator& a, const PoolAllocator<Other>& b) {
    return &a.pool() == &b.pool();
  }

 private:
  static constexpr std::size_t kBytes = sizeof(T);  // NOLINT(bugprone-sizeof-expression): Value*

  Pool* pool_;
};

}  // namespace graft
