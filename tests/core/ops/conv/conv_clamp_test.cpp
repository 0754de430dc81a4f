#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <list>

#include "core/base/rng.h"
#include "tests/core/ops/call_op.h"
#include "tests/core/threads.h"

namespace graft {
namespace {

using testing::floats;
using testing::OneNode;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// A convolution of one image, positions of which are set, clamped by each kernel that takes it.
class Clamped {
 public:
  Clamped(const Shape& x, const Shape& w, Attributes attributes)
      : inputs_{numbers(x, 1), numbers(w, 2)},
        conv_("Conv", "", inputs_, 1, attributes),
        clamp_("ConvClamp", kInternalDomain, inputs_, 1, with_bounds(attributes)) {
    for (OneNode* const one : {&conv_, &clamp_}) {
      one->node->input(0)->is_variable = true;  // only the weight is known before the run
      one->node->input(0)->layout = Layout::channels_last;
      one->node->output()->layout = Layout::channels_last;
    }
  }

  std::vector<PreparedKernel> kernels() const { return prepare_all_kernels(*clamp_.node, cpu()); }

  void set(std::int64_t at, float value) { inputs_[0].values<float>()[at_size(at)] = value; }

  std::vector<float> run(const PreparedKernel& kernel) const {
    return floats(evaluate(kernel, *clamp_.node, inputs_).front());
  }

  /// What the same kernel gives without a clamp, clamped here.
  std::vector<float> wanted(std::string_view kernel) const {
    for (const PreparedKernel& one : prepare_all_kernels(*conv_.node, cpu())) {
      if (one.name != kernel) continue;
      std::vector<float> y = floats(evaluate(one, *conv_.node, inputs_).front());
      for (float& number : y) {
        if (!std::isnan(number)) number = std::min(std::max(number, kLower), kUpper);
      }
      return y;
    }
    return {};
  }

  static constexpr float kLower = -0.25F;
  static constexpr float kUpper = 0.5F;

 private:
  static std::size_t at_size(std::int64_t i) { return static_cast<std::size_t>(i); }

  static Tensor numbers(const Shape& shape, std::uint64_t stream) {
    const Philox random(7, stream);
    std::vector<float> values(at_size(shape.size()));
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<float>(random.uniform_double(i)) - 0.5F;
    }
    return Tensor::from(shape, values);
  }

  static Attributes with_bounds(Attributes attributes) {
    attributes.set({"lower", kLower});
    attributes.set({"upper", kUpper});
    return attributes;
  }

  std::vector<Tensor> inputs_;
  OneNode conv_;
  OneNode clamp_;
};

/// NaN is no number: compared by bits but for it.
void expect_same(const std::vector<float>& found, const std::vector<float>& wanted,
                 std::string_view what) {
  ASSERT_EQ(found.size(), wanted.size()) << what;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const bool both = std::isnan(found[i]) && std::isnan(wanted[i]);
    ASSERT_TRUE(both || found[i] == wanted[i])
        << what << ", element " << i << ": found " << found[i] << ", wanted " << wanted[i];
  }
}

std::list<Clamped> convolutions() {
  using Ints = std::vector<std::int64_t>;
  const Ints around{1, 1, 1, 1};
  std::list<Clamped> all;
  all.emplace_back(Shape{1, 24, 20, 20}, Shape{48, 24, 1, 1}, Attributes{});
  all.emplace_back(Shape{1, 24, 20, 20}, Shape{40, 24, 3, 3}, Attributes{{"pads", around}});
  all.emplace_back(Shape{2, 64, 14, 14}, Shape{64, 64, 3, 3}, Attributes{{"pads", around}});
  all.emplace_back(Shape{1, 32, 20, 20}, Shape{32, 1, 3, 3},
                   Attributes{{"group", 32}, {"pads", around}});
  all.emplace_back(Shape{1, 3, 32, 32}, Shape{32, 3, 3, 3}, Attributes{{"strides", Ints{2, 2}}});
  return all;
}

TEST(ConvClamp, GivesWhatTheConvolutionGivesWithinTheBounds) {
  for (const Clamped& one : convolutions()) {
    for (const PreparedKernel& kernel : one.kernels()) {
      const std::vector<float> y = one.run(kernel);
      expect_same(y, one.wanted(kernel.name), kernel.name);
      EXPECT_EQ(std::ranges::min(y), Clamped::kLower) << "else nothing is clamped";
      EXPECT_EQ(std::ranges::max(y), Clamped::kUpper);
    }
  }
}

/// A run that meets a NaN keeps it, whichever thread meets it, and leaves nothing to the next.
TEST(ConvClamp, KeepsNan) {
  for (const int threads : {1, 3}) {
    const testing::Threads count(threads);
    for (Clamped& one : convolutions()) {
      for (const PreparedKernel& kernel : one.kernels()) {
        const std::vector<float> clean = one.run(kernel);
        for (const std::int64_t at : {0, 517, 2000}) {
          one.set(at, kNan);
          const std::vector<float> y = one.run(kernel);
          EXPECT_TRUE(std::ranges::any_of(y, [](float v) { return std::isnan(v); }));
          expect_same(y, one.wanted(kernel.name), text(kernel.name, " on ", threads));
          one.set(at, 0.125F);
          one.run(kernel);
        }
        for (const float infinity : {kInfinity, -kInfinity}) {
          one.set(99, infinity);
          expect_same(one.run(kernel), one.wanted(kernel.name), kernel.name);
          one.set(99, 0.125F);
        }
        EXPECT_EQ(one.run(kernel).size(), clean.size());
        expect_same(one.run(kernel), one.wanted(kernel.name), kernel.name);
      }
    }
  }
}

}  // namespace
}  // namespace graft
