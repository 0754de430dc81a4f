#include "core/base/pool.h"

#include <algorithm>
#include <cstdlib>
#include <new>
#include <utility>

#include "core/base/large_pages.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace graft {
namespace {

constexpr std::size_t kFewest = 4;  // a body of two nodes has a pool too
constexpr std::size_t kLargestBlock = 1 << 16;

/// Among the sizes of pieces.
std::size_t size_index(std::size_t bytes) {
  return bytes == 0 ? 0 : (bytes - 1) / Pool::kAlignment;
}

/// Nobody has that memory: the address sanitizer then finds who reads or writes there.
void forbid([[maybe_unused]] void* memory, [[maybe_unused]] std::size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  ASAN_POISON_MEMORY_REGION(memory, bytes);
#endif
}

void permit([[maybe_unused]] void* memory, [[maybe_unused]] std::size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  ASAN_UNPOISON_MEMORY_REGION(memory, bytes);
#endif
}

}  // namespace

void Pool::Freed::operator()(std::byte* block) const {
  std::free(block);
}

std::byte* Pool::keep(void* block) {
  std::unique_ptr<std::byte, Freed> kept(static_cast<std::byte*>(block));
  if (kept == nullptr) throw std::bad_alloc();
  return blocks_.emplace_back(std::move(kept)).get();
}

/// From the heap, then, once there is more than a large page, from such.
std::byte* Pool::new_block(std::size_t bytes) {
  if (of_heap_ < kLargePageBytes) {
    of_heap_ += bytes;
    return keep(std::malloc(bytes));
  }
  if (large_page_left_ < bytes) {
    large_page_ = keep(allocate_large_pages(kLargePageBytes));
    large_page_left_ = kLargePageBytes;
  }
  large_page_left_ -= bytes;
  return std::exchange(large_page_, large_page_ + bytes);
}

/// As many pieces again as there are.
void Pool::add_block(Pieces& pieces, std::size_t bytes) {
  const std::size_t count = std::clamp<std::size_t>(pieces.made, kFewest, kLargestBlock / bytes);
  pieces.next = new_block(count * bytes);
  pieces.left = static_cast<std::uint32_t>(count);
  pieces.made += pieces.left;
  forbid(pieces.next, count * bytes);
}

void* Pool::allocate(std::size_t bytes) {
  if (bytes > kLargest) return ::operator new(bytes);
  const std::size_t index = size_index(bytes);
  const std::size_t taken = (index + 1) * kAlignment;
  Pieces& pieces = pieces_[index];
  if (Free* const piece = pieces.free) {
    permit(piece, taken);
    pieces.free = piece->next;
    return piece;
  }
  if (pieces.left == 0) add_block(pieces, taken);
  --pieces.left;
  permit(pieces.next, taken);
  return std::exchange(pieces.next, pieces.next + taken);
}

void Pool::deallocate(void* piece, std::size_t bytes) {
  if (bytes > kLargest) return ::operator delete(piece);
  const std::size_t index = size_index(bytes);
  Free*& first = pieces_[index].free;
  first = ::new (piece) Free{first};
  forbid(piece, (index + 1) * kAlignment);
}

}  // namespace graft
