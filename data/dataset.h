#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/dtype.h"
#include "core/base/shape.h"
#include "core/tensor/tensor.h"

namespace graft {

/// Which part of a data set: the one to train on or the one held back to measure with.
enum class Split { train, test };

/// "train", "test".
std::string_view name(Split split);

/// One named tensor of a sample. `shape` has no batch axis; the elements are numbers or bool.
struct SampleField {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
};

/// What a data set holds.
struct DatasetInfo {
  /// The number of samples.
  std::int64_t size = 0;
  std::vector<SampleField> inputs;
  SampleField target;
  /// Targets of models that are judged by several, behind the first.
  std::vector<SampleField> further_targets = {};
  /// Labels are in [0, classes) when the target is one class index (an i64 scalar); otherwise 0.
  std::int64_t classes = 0;
  /// One name a class, or empty when they are not known.
  std::vector<std::string> class_names;
};

/// `size` samples: `inputs[i]` is [size, fields of input i], `target` is [size, field]. Inputs are
/// the model's in its order, whatever they are called.
struct Batch {
  std::vector<Tensor> inputs;
  Tensor target;
  /// 0: the first dim of the target.
  std::int64_t size = 0;
  std::vector<Tensor> further_targets = {};
};

/// The first target and those behind it.
std::vector<Tensor> targets_of(const Batch& batch);

/// Batch::size, or what it stands for. Throws Error{argument} where neither says a number.
std::int64_t sample_count(const Batch& batch);

/// Memory for `size` samples, not initialised. Throws Error{memory}.
Batch make_batch(const DatasetInfo& info, std::int64_t size);

/// The place of one sample in a batch; `Dataset::read` writes there.
class SampleRow {
 public:
  /// `batch` must outlive the row. Throws Error{argument} unless `index` is in
  /// [0, sample_count(batch)), and what `sample_count` throws.
  SampleRow(const Batch& batch, std::int64_t index);

  /// The elements of input `i`, row-major. Throws Error{type} if T is not the field's type,
  /// Error{argument} if there is no input `i`.
  template <class T>
  std::span<T> input(std::size_t i = 0) const {
    return part(field(batch_->inputs, i, "inputs").values<T>());
  }
  /// The elements of the target. Throws Error{type} if T is not the field's type.
  template <class T>
  std::span<T> target() const {
    return part(batch_->target.values<T>());
  }
  /// Those of target `i` of the further ones. Throws as `input` does.
  template <class T>
  std::span<T> further_target(std::size_t i) const {
    return part(field(batch_->further_targets, i, "further targets").values<T>());
  }

 private:
  static const Tensor& field(const std::vector<Tensor>& all, std::size_t i, std::string_view what);

  template <class T>
  std::span<T> part(std::span<T> all) const {
    const std::size_t count = all.size() / static_cast<std::size_t>(samples_);
    return all.subspan(static_cast<std::size_t>(index_) * count, count);
  }

  const Batch* batch_;
  std::int64_t index_;
  std::int64_t samples_;
};

/// Samples that can be read in any order. To add one: fill a DatasetInfo and write `read`.
class Dataset {
 public:
  virtual ~Dataset() = default;
  Dataset(const Dataset&) = delete;
  Dataset& operator=(const Dataset&) = delete;

  const DatasetInfo& info() const { return info_; }
  std::int64_t size() const { return info_.size; }

  /// Writes every element of sample `index`, in [0, size()), into `row`. Safe to call from several
  /// threads at once. Throws Error{io} if the sample cannot be read.
  virtual void read(std::int64_t index, const SampleRow& row) const = 0;

 protected:
  /// Throws Error{argument} if `info` contradicts itself or has a field of other elements than
  /// AllTypes.
  explicit Dataset(DatasetInfo info);

 private:
  DatasetInfo info_;
};

/// Throws Error{argument} unless each label fits a model that tells `classes` classes apart. A
/// target that is not a class index is an error too.
void check_labels(const Dataset& dataset, std::int64_t classes);

}  // namespace graft
