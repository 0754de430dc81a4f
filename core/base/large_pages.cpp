#include "core/base/large_pages.h"

#include <sys/mman.h>

#include <cstdlib>

namespace graft {

void* allocate_large_pages(std::size_t bytes) {
  void* memory = nullptr;  // std::aligned_alloc wants a multiple of the alignment
  if (posix_memalign(&memory, kLargePageBytes, bytes) != 0) return nullptr;
#ifdef MADV_HUGEPAGE
  madvise(memory, bytes, MADV_HUGEPAGE);
#endif
  return memory;
}

}  // namespace graft
