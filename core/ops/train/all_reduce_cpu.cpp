#include <algorithm>
#include <numeric>

#include "core/base/parallel.h"
#include "core/device/communicator.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

constexpr int kFirst = 1;
constexpr std::int64_t kGrain = std::int64_t{1} << 15;

/// y = scale x, for elements that may be the same.
template <class T>
void scale(const T* x, std::int64_t count, T factor, T* y) {
  parallel_for(count, kGrain, [=](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) y[i] = factor * x[i];
  });
}

/// Several tensors travel as one, packed into the workspace; a single one where it lies.
template <class T>
class MeanOverRanks {
 public:
  MeanOverRanks(Communicator& ranks, KernelRequest& request) : ranks_(ranks) {
    for (int i = kFirst; i < request.input_count(); ++i) sizes_.push_back(request.shape(i).size());
    total_ = std::accumulate(sizes_.begin(), sizes_.end(), std::int64_t{0});
    if (sizes_.size() > 1) request.need_workspace(static_cast<std::size_t>(total_) * sizeof(T));
  }

  void operator()(const KernelArgs& args) const {
    if (ranks_.size() == 1) return copy(args);
    T* const packed = sizes_.size() == 1 ? args.output<T>() : static_cast<T*>(args.workspace);
    T* to = packed;
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
      const T* const from = args.input<T>(kFirst + static_cast<int>(i));
      if (from != to) std::copy_n(from, sizes_[i], to);
      to += sizes_[i];
    }
    ranks_.all_reduce(std::span<T>(packed, static_cast<std::size_t>(total_)));
    const T share = T(1) / static_cast<T>(ranks_.size());
    const T* sum = packed;
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
      scale(sum, sizes_[i], share, args.output<T>(static_cast<int>(i)));
      sum += sizes_[i];
    }
  }

 private:
  void copy(const KernelArgs& args) const {
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
      const T* const from = args.input<T>(kFirst + static_cast<int>(i));
      T* const to = args.output<T>(static_cast<int>(i));
      if (from != to) std::copy_n(from, sizes_[i], to);
    }
  }

  Communicator& ranks_;
  std::vector<std::int64_t> sizes_;
  std::int64_t total_ = 0;
};

Kernel make_all_reduce(KernelRequest& request) {
  Communicator& ranks = communicator_of(request.attributes().get_int("communicator", 0));
  if (request.dtype(kFirst) == DType::f32) return MeanOverRanks<float>(ranks, request);
  if (request.dtype(kFirst) == DType::f64) return MeanOverRanks<double>(ranks, request);
  return {};
}

}  // namespace

void register_all_reduce_cpu(KernelRegistry& registry);
void register_all_reduce_cpu(KernelRegistry& registry) {
  registry.add(
      {.op = "AllReduce", .domain = kInternalDomain, .name = "plain", .make = make_all_reduce});
}

}  // namespace graft
