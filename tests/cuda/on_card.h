#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "core/device/cuda/cuda_device.h"

namespace graft::test {

inline CudaDevice& card() {
  return as_cuda(device("cuda:emulated"));
}

/// Elements on the card, copied there and back.
template <class T>
class OnCard {
 public:
  explicit OnCard(const std::vector<T>& values) : size_(values.size()) {
    data_ = static_cast<T*>(card().allocate(size_ * sizeof(T)));
    card().copy_from_host(data_, values.data(), size_ * sizeof(T));
  }
  ~OnCard() { card().deallocate(data_); }
  OnCard(const OnCard&) = delete;
  OnCard& operator=(const OnCard&) = delete;

  T* data() const { return data_; }
  std::vector<T> read() const {
    std::vector<T> values(size_);
    card().copy_to_host(values.data(), data_, size_ * sizeof(T));
    return values;
  }

 private:
  std::size_t size_;
  T* data_;
};

}  // namespace graft::test
