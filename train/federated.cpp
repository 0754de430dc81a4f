#include "train/federated.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <span>
#include <string_view>

#include "core/base/rng.h"
#include "core/graph/model.h"

namespace graft::federated {
namespace {

constexpr std::int64_t kBlock = 256;  // numbers that share a scale
constexpr float kMostLevel = 127.0F;

std::int64_t blocks_of(std::int64_t size) {
  return (size + kBlock - 1) / kBlock;
}

/// `of`: what they are numbers of, and what has come about if they are not finite.
std::span<const float> finite_values(const Tensor& tensor, std::string_view of,
                                     std::string_view otherwise) {
  const auto values = tensor.values<const float>();
  const auto found = std::ranges::find_if(values, [](float x) { return !std::isfinite(x); });
  if (found != values.end()) {
    fail(ErrorKind::numeric, "number ", found - values.begin(), " of the ", of, " is ", *found,
         ", wanted finite ones: ", otherwise);
  }
  return values;
}

std::span<const float> finite_values(const Tensor& delta) {
  return finite_values(delta, "delta", "training has diverged");
}

/// What 1 stands for in a block of such numbers. Below the least normal number divisions would lose
/// digits; above the other bound the largest level would be infinite.
float scale_of(std::span<const float> block) {
  float largest = 0.0F;
  for (const float x : block) largest = std::max(largest, std::abs(x));
  using Limits = std::numeric_limits<float>;
  static const float kMost = std::nextafter(Limits::max() / kMostLevel, 0.0F);
  return std::clamp(largest / kMostLevel, Limits::min(), kMost);
}

std::int8_t rounded(float x, float scale, float u) {
  return static_cast<std::int8_t>(std::clamp(std::floor(x / scale + u), -kMostLevel, kMostLevel));
}

}  // namespace

FlatParameters::FlatParameters(Model& model, std::vector<std::string> names)
    : model_(&model), names_(std::move(names)) {
  if (names_.empty()) fail(ErrorKind::argument, "no names of parameters, wanted at least one");
  std::set<std::string> seen;
  for (const std::string& name : names_) {
    if (!seen.insert(name).second) {
      fail(ErrorKind::argument, "'", name, "' stands twice among the parameters");
    }
    shapes_.push_back(tensor_of(name).shape());
    size_ += shapes_.back().size();
  }
}

Tensor FlatParameters::tensor_of(const std::string& name) const {
  const Value* const value = model_->graph().find(name);
  if (value == nullptr || !value->is_initializer()) {
    fail(ErrorKind::argument, "the model has no initializer '", name, "'");
  }
  const Tensor& tensor = value->initializer();
  if (tensor.dtype() != DType::f32) {
    fail(ErrorKind::type, "'", name, "' is ", describe(tensor), ", wanted f32");
  }
  return tensor;
}

std::vector<Tensor> FlatParameters::tensors() const {
  std::vector<Tensor> all;
  for (std::size_t i = 0; i < names_.size(); ++i) {
    all.push_back(tensor_of(names_[i]));
    if (all.back().shape() == shapes_[i]) continue;
    fail(ErrorKind::shape, "'", names_[i], "' is ", describe(all.back()),
         " since the graph was edited, wanted ", describe(DType::f32, shapes_[i]),
         ": make a FlatParameters anew");
  }
  return all;
}

void FlatParameters::check(const Tensor& numbers) const {
  if (numbers.dtype() == DType::f32 && numbers.shape() == Shape{size_}) return;
  fail(ErrorKind::shape, "found ", describe(numbers), ", wanted ",
       describe(DType::f32, Shape{size_}), ": all numbers of ", names_.size(), " parameters");
}

Tensor FlatParameters::get() const {
  Tensor flat = Tensor::empty(DType::f32, Shape{size_});
  auto to = flat.values<float>().begin();
  for (const Tensor& tensor : tensors()) {
    const Tensor host = tensor.to(cpu());
    to = std::ranges::copy(host.values<const float>(), to).out;
  }
  return flat;
}

void FlatParameters::set(const Tensor& numbers) {
  check(numbers);
  const Tensor host = numbers.to(cpu());
  std::span<const float> rest = host.values<const float>();
  for (const Tensor& tensor : tensors()) {
    const auto size = static_cast<std::size_t>(tensor.size());
    tensor.copy_from(Tensor::from(tensor.shape(), rest.first(size)));
    rest = rest.subspan(size);
  }
}

Tensor FlatParameters::delta(const Tensor& before) const {
  check(before);
  const Tensor host = before.to(cpu());
  const Tensor delta = get();
  const auto old = host.values<const float>();
  const auto now = delta.values<float>();
  for (std::size_t i = 0; i < now.size(); ++i) now[i] -= old[i];
  return delta;
}

Tensor clipped(const Tensor& delta, double most) {
  if (!(most > 0.0)) fail(ErrorKind::argument, "the norm is ", most, ", wanted more than 0");
  const Tensor result = delta.clone();
  double sum = 0.0;
  for (const float x : finite_values(delta)) sum += double{x} * double{x};
  const double norm = std::sqrt(sum);
  if (norm <= most) return result;
  for (float& x : result.values<float>()) x = static_cast<float>(double{x} * (most / norm));
  return result;
}

Tensor noised(const Tensor& delta, double deviation, std::uint64_t seed) {
  if (!(deviation >= 0.0) || !std::isfinite(deviation)) {
    fail(ErrorKind::argument, "the deviation is ", deviation,
         ", wanted a finite number of at least 0");
  }
  const auto old = finite_values(delta);
  const Tensor result = Tensor::empty(DType::f32, delta.shape());
  const auto numbers = result.values<float>();
  const Philox random(seed);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = static_cast<float>(double{old[i]} + deviation * random.normal(i));
  }
  return result;
}

Packed packed(const Tensor& delta, std::uint64_t seed) {
  const auto values = finite_values(delta);
  Packed result{Tensor::empty(DType::i8, Shape{delta.size()}),
                Tensor::empty(DType::f32, Shape{blocks_of(delta.size())})};
  const auto numbers = result.numbers.values<std::int8_t>();
  const auto scales = result.scales.values<float>();
  const Philox random(seed);
  for (std::size_t block = 0; block < scales.size(); ++block) {
    const std::size_t first = block * kBlock;
    const std::size_t end = std::min(first + kBlock, values.size());
    scales[block] = scale_of(values.subspan(first, end - first));
    for (std::size_t i = first; i < end; ++i) {
      numbers[i] = rounded(values[i], scales[block], random.uniform(i));
    }
  }
  return result;
}

Tensor unpacked(const Packed& packed) {
  const auto numbers = packed.numbers.values<const std::int8_t>();
  const auto scales = finite_values(packed.scales, "scales", "they are not what was packed");
  const auto wanted = static_cast<std::size_t>(blocks_of(packed.numbers.size()));
  if (scales.size() != wanted) {
    fail(ErrorKind::shape, "found ", scales.size(), " scales for ", numbers.size(),
         " numbers, wanted ", wanted);
  }
  const Tensor delta = Tensor::empty(DType::f32, Shape{packed.numbers.size()});
  const auto values = delta.values<float>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(numbers[i]) * scales[i / kBlock];
  }
  return delta;
}

}  // namespace graft::federated
