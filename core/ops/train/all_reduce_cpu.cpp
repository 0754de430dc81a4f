#include <algorithm>
#include <numeric>

#include "core/base/float16.h"
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

std::vector<std::int64_t> sizes_of(const KernelRequest& request) {
  std::vector<std::int64_t> sizes;
  for (int i = kFirst; i < request.input_count(); ++i) sizes.push_back(request.shape(i).size());
  return sizes;
}

/// A rank alone has the means.
template <class T>
void copy(const KernelArgs& args, const std::vector<std::int64_t>& sizes) {
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const T* const from = args.input<T>(kFirst + static_cast<int>(i));
    T* const to = args.output<T>(static_cast<int>(i));
    if (from != to) std::copy_n(from, sizes[i], to);
  }
}

/// Several tensors travel as one, packed into the workspace; a single one where it lies.
template <class T>
class MeanOverRanks {
 public:
  MeanOverRanks(Communicator& ranks, KernelRequest& request)
      : ranks_(ranks), sizes_(sizes_of(request)) {
    total_ = std::accumulate(sizes_.begin(), sizes_.end(), std::int64_t{0});
    if (sizes_.size() > 1) request.need_workspace(static_cast<std::size_t>(total_) * sizeof(T));
  }

  void operator()(const KernelArgs& args) const {
    if (ranks_.size() == 1) return copy<T>(args, sizes_);
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
  Communicator& ranks_;
  std::vector<std::int64_t> sizes_;
  std::int64_t total_ = 0;
};

/// The same of f32, which travels in bf16: each rank gets a piece of all others', adds up that
/// piece in f32, always in the same order, and gives its mean to all. As many numbers are sent as
/// by a ring.
class MeanOverShortWire {
 public:
  MeanOverShortWire(Communicator& ranks, KernelRequest& request)
      : ranks_(ranks), sizes_(sizes_of(request)) {
    const std::int64_t size = ranks.size();
    const std::int64_t total = std::accumulate(sizes_.begin(), sizes_.end(), std::int64_t{0});
    padded_ = (total + size - 1) / size * size;
    slice_ = std::min(padded_, std::max(std::int64_t{1}, kSlice / size) * size);
    request.need_workspace(static_cast<std::size_t>(padded_ + slice_) * sizeof(BFloat16));
  }

  void operator()(const KernelArgs& args) const {
    if (ranks_.size() == 1) return copy<float>(args, sizes_);
    auto* const packed = static_cast<BFloat16*>(args.workspace);
    BFloat16* to = packed;
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
      convert(args.input<float>(kFirst + static_cast<int>(i)), sizes_[i], to);
      to += sizes_[i];
    }
    std::fill(to, packed + padded_, BFloat16());
    for (std::int64_t first = 0; first < padded_; first += slice_) {
      exchange(packed + first, std::min(slice_, padded_ - first), packed + padded_);
    }
    const BFloat16* mean = packed;
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
      convert(mean, sizes_[i], args.output<float>(static_cast<int>(i)));
      mean += sizes_[i];
    }
  }

 private:
  static constexpr std::int64_t kSlice = std::int64_t{1} << 22;  // elements

  template <class From, class To>
  static void convert(const From* from, std::int64_t count, To* to) {
    parallel_for(count, kGrain, [=](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) to[i] = static_cast<To>(from[i]);
    });
  }

  /// `count` elements become their means; `received` has room for as many.
  void exchange(BFloat16* values, std::int64_t count, BFloat16* received) const {
    const auto bytes = static_cast<std::size_t>(count) * sizeof(BFloat16);
    const std::span<std::byte> all(reinterpret_cast<std::byte*>(values), bytes);
    ranks_.all_to_all(all, {reinterpret_cast<std::byte*>(received), bytes});
    const int size = ranks_.size();
    const std::int64_t piece = count / size;
    BFloat16* const mine = values + ranks_.rank() * piece;
    const float share = 1.0F / static_cast<float>(size);
    parallel_for(piece, kGrain, [=](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) {
        float sum = 0.0F;
        for (int rank = 0; rank < size; ++rank) {
          sum += static_cast<float>(received[rank * piece + i]);
        }
        mine[i] = BFloat16(sum * share);
      }
    });
    ranks_.all_gather(all);
  }

  Communicator& ranks_;
  std::vector<std::int64_t> sizes_;
  std::int64_t padded_ = 0;  // elements in all, a multiple of the ranks
  std::int64_t slice_ = 0;   // sent at once, a multiple of the ranks
};

Kernel make_all_reduce(KernelRequest& request) {
  Communicator& ranks = communicator_of(request.attributes().get_int("communicator", 0));
  const auto wire = static_cast<DType>(request.attributes().get_int("wire", 0));
  if (request.dtype(kFirst) == DType::f32) {
    if (wire == DType::bf16) return MeanOverShortWire(ranks, request);
    return MeanOverRanks<float>(ranks, request);
  }
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
