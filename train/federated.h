#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/tensor/tensor.h"

namespace graft {

class Model;

/// What federated training exchanges in place of data: a model's parameters as one vector, and what
/// a client has changed in it. Source: McMahan et al., "Communication-Efficient Learning of Deep
/// Networks from Decentralized Data", AISTATS 2017.
namespace federated {

/// Some of a model's initializers, seen as one vector of f32: their elements one after another, in
/// the order of the names. The model must outlive it; its graph may be edited as long as names and
/// shapes stay: `get`, `set` and `delta` throw Error{shape} otherwise, and change nothing.
class FlatParameters {
 public:
  /// `names`: mostly those of TrainStep::changed_names. What no step changes must not be among them
  /// once a step has run, for plans may hold it as it was. Throws Error{argument} if there is none,
  /// if one is no initializer or stands there twice, Error{type} if one is not f32.
  FlatParameters(Model& model, std::vector<std::string> names);

  const std::vector<std::string>& names() const { return names_; }
  /// How many numbers they hold.
  std::int64_t size() const { return size_; }
  /// A copy, f32 [size], on the CPU.
  Tensor get() const;
  /// Writes such a vector into the model. Throws Error{shape} if it is no f32 [size].
  void set(const Tensor& numbers);
  /// What training has changed since `before`, which `get` gave: get() - before.
  Tensor delta(const Tensor& before) const;

 private:
  Tensor tensor_of(const std::string& name) const;
  /// All, in the shapes that they had.
  std::vector<Tensor> tensors() const;
  void check(const Tensor& numbers) const;

  Model* model_;
  std::vector<std::string> names_;
  std::vector<Shape> shapes_;
  std::int64_t size_ = 0;
};

/// The delta, scaled down where its Euclidean norm is above `most`. The functions below take f32
/// tensors on the CPU, and throw Error{type} for others, Error{numeric} if a number is not finite.
Tensor clipped(const Tensor& delta, double most);
/// The delta with normal noise of that standard deviation on each number. Of a delta clipped to
/// norm c, a deviation of z c is the Gaussian mechanism with noise multiplier z (Dwork and Roth,
/// "The Algorithmic Foundations of Differential Privacy", 2014, A). Who knows `seed` can take the
/// noise off again.
Tensor noised(const Tensor& delta, double deviation, std::uint64_t seed);

/// A vector in about a quarter of its bytes.
struct Packed {
  Tensor numbers;  ///< i8 [n]
  Tensor scales;   ///< f32: what 1 stands for, in each block of 256 numbers
};

/// Rounds each number up or down to a multiple of its block's scale, the largest magnitude / 127,
/// with chances that keep its mean, so that errors of many clients cancel (Alistarh et al., "QSGD",
/// NeurIPS 2017). `seed` draws.
Packed packed(const Tensor& delta, std::uint64_t seed);
/// The vector again. Throws Error{type} or {shape} if the parts do not fit, Error{numeric} if a
/// scale is not finite.
Tensor unpacked(const Packed& packed);

}  // namespace federated
}  // namespace graft
