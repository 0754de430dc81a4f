// Stands in for cuDNN: loops over what a Convolution says, when the stream comes to it.
#include "core/device/cuda/emulated/convolution.h"

#include <array>
#include <cstring>

#include "core/base/float16.h"
#include "core/device/cuda/emulated/count.h"
#include "core/device/cuda/emulated/streams.h"

namespace graft {
namespace {

/// Where an element of an image or a weight lies; spatial axes are always three.
class Elements {
 public:
  Elements(const std::vector<std::int64_t>& dims, bool is_channels_last)
      : is_channels_last_(is_channels_last), channels_(dims[1]) {
    size_ = {1, 1, 1};
    for (std::size_t i = 2; i < dims.size(); ++i) size_[3 - (dims.size() - i)] = dims[i];
  }

  const std::array<std::int64_t, 3>& size() const { return size_; }
  std::int64_t at(std::int64_t n, std::int64_t c, const std::array<std::int64_t, 3>& place) const {
    const std::int64_t plane = size_[0] * size_[1] * size_[2];
    const std::int64_t spot = (place[0] * size_[1] + place[1]) * size_[2] + place[2];
    return is_channels_last_ ? (n * plane + spot) * channels_ + c
                             : (n * channels_ + c) * plane + spot;
  }

 private:
  bool is_channels_last_;
  std::int64_t channels_;
  std::array<std::int64_t, 3> size_{};
};

std::array<std::int64_t, 3> three(const std::vector<std::int64_t>& values, std::int64_t first) {
  std::array<std::int64_t, 3> all{first, first, first};
  for (std::size_t i = 0; i < values.size(); ++i) all[3 - (values.size() - i)] = values[i];
  return all;
}

float load(const void* data, Convolution::Type type, std::int64_t at) {
  return type == Convolution::Type::bf16
             ? static_cast<float>(static_cast<const BFloat16*>(data)[at])
             : static_cast<const float*>(data)[at];
}

struct Loops {
  Convolution c;
  Elements x{c.x, c.is_channels_last};
  Elements w{c.w, c.is_channels_last};
  Elements y{c.y, c.is_channels_last};
  std::array<std::int64_t, 3> strides = three(c.strides, 1);
  std::array<std::int64_t, 3> dilations = three(c.dilations, 1);
  std::array<std::int64_t, 3> pads = three(c.pads_begin, 0);

  /// Calls body(x index, w index, y index) for each product of the convolution.
  template <class Body>
  void for_each_product(const Body& body) const {
    const std::int64_t inputs = c.w[1];
    const std::int64_t groups = c.x[1] / inputs;
    const std::int64_t outputs = c.w[0] / groups;
    for (std::int64_t n = 0; n < c.y[0]; ++n) {
      for (std::int64_t m = 0; m < c.w[0]; ++m) {
        const std::int64_t first = m / outputs * inputs;
        for_each(y.size(), [&](const auto& o) {
          for_each(w.size(), [&](const auto& k) {
            std::array<std::int64_t, 3> place{};
            for (std::size_t i = 0; i < 3; ++i) {
              place[i] = o[i] * strides[i] + k[i] * dilations[i] - pads[i];
              if (place[i] < 0 || place[i] >= x.size()[i]) return;
            }
            for (std::int64_t channel = 0; channel < inputs; ++channel) {
              body(x.at(n, first + channel, place), w.at(m, channel, k), y.at(n, m, o));
            }
          });
        });
      }
    }
  }

  template <class Body>
  static void for_each(const std::array<std::int64_t, 3>& size, const Body& body) {
    for (std::int64_t i = 0; i < size[0]; ++i) {
      for (std::int64_t j = 0; j < size[1]; ++j) {
        for (std::int64_t k = 0; k < size[2]; ++k) body(std::array<std::int64_t, 3>{i, j, k});
      }
    }
  }
};

std::size_t size_of(const std::vector<std::int64_t>& dims) {
  std::int64_t size = 1;
  for (const std::int64_t dim : dims) size *= dim;
  return static_cast<std::size_t>(size);
}

class OnCpu final : public ConvolutionPlan {
 public:
  OnCpu(const Convolution& convolution, CudaDevice& device)
      : loops_{convolution}, device_(device) {}

  /// Some, so that a workspace that is missing or not ours shows.
  std::size_t workspace_bytes() const override { return 512; }

  void run(const void* x, const void* w, const void* y, void* workspace) const override {
    emulated::enqueue(device_.stream(), [=, this] {
      emulated::count_kernel();
      std::memset(workspace, 0xff, workspace_bytes());
      make(x, w, y);
    });
  }

 private:
  void make(const void* x, const void* w, const void* y) const {
    const Convolution& c = loops_.c;
    const auto value = [&](const void* data) {
      return [data, type = c.type](std::int64_t at) {
        return static_cast<double>(load(data, type, at));
      };
    };
    const auto x_at = value(x);
    const auto w_at = value(w);
    const auto y_at = value(y);
    switch (c.part) {
      case Convolution::Part::forward:
        return write(c.y, y, [&](auto i, auto j, auto k, auto& sums) {
          sums[static_cast<std::size_t>(k)] += x_at(i) * w_at(j);
        });
      case Convolution::Part::input_gradient:
        return write(c.x, x, [&](auto i, auto j, auto k, auto& sums) {
          sums[static_cast<std::size_t>(i)] += w_at(j) * y_at(k);
        });
      case Convolution::Part::weight_gradient:
        return write(c.w, w, [&](auto i, auto j, auto k, auto& sums) {
          sums[static_cast<std::size_t>(j)] += x_at(i) * y_at(k);
        });
    }
  }

  template <class Add>
  void write(const std::vector<std::int64_t>& dims, const void* target, const Add& add) const {
    std::vector<double> sums(size_of(dims), 0.0);
    loops_.for_each_product([&](auto i, auto j, auto k) { add(i, j, k, sums); });
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const auto at = static_cast<std::int64_t>(i);
      if (loops_.c.adds) sums[i] += load(target, loops_.c.type, at);
      const auto sum = static_cast<float>(sums[i]);
      if (loops_.c.type == Convolution::Type::bf16) {
        static_cast<BFloat16*>(const_cast<void*>(target))[i] = BFloat16(sum);
      } else {
        static_cast<float*>(const_cast<void*>(target))[i] = sum;
      }
    }
  }

  Loops loops_;
  CudaDevice& device_;
};

}  // namespace

std::vector<Convolution>& emulated::planned_convolutions() {
  static std::vector<Convolution>& all = *new std::vector<Convolution>;
  return all;
}

std::shared_ptr<const ConvolutionPlan> make_convolution_plan(const Convolution& convolution,
                                                             CudaDevice& device) {
  emulated::planned_convolutions().push_back(convolution);
  return std::make_shared<OnCpu>(convolution, device);
}

std::string describe_convolution_library() {
  return "cuDNN emulated";
}

}  // namespace graft
