#include "data/dataset.h"

#include <utility>

#include "core/base/error.h"

namespace graft {
namespace {

void check_field(const SampleField& field) {
  if (!visit_dtype(AllTypes{}, field.dtype, []<class T>() {})) {
    fail(ErrorKind::argument, "data set: field '", field.name, "' is ",
         describe(field.dtype, field.shape), ", wanted elements that are numbers or bool");
  }
}

void check(const DatasetInfo& info) {
  if (info.size < 0) fail(ErrorKind::argument, "data set: size ", info.size, " is negative");
  if (info.inputs.empty()) fail(ErrorKind::argument, "data set: a sample needs an input");
  for (const SampleField& field : info.inputs) check_field(field);
  check_field(info.target);
  for (const SampleField& field : info.further_targets) check_field(field);
  if (info.classes < 0) {
    fail(ErrorKind::argument, "data set: ", info.classes, " classes, wanted 0 or more");
  }
  const bool is_label = info.target.dtype == DType::i64 && info.target.shape.rank() == 0;
  if (info.classes > 0 && !is_label) {
    fail(ErrorKind::argument, "data set: ", info.classes, " classes need an i64[] target, found ",
         describe(info.target.dtype, info.target.shape));
  }
  if (!info.class_names.empty() && std::cmp_not_equal(info.class_names.size(), info.classes)) {
    fail(ErrorKind::argument, "data set: ", info.class_names.size(), " class names for ",
         info.classes, " classes");
  }
}

Tensor rows_of(const SampleField& field, std::int64_t rows) {
  std::vector<std::int64_t> dims{rows};
  dims.insert(dims.end(), field.shape.begin(), field.shape.end());
  return Tensor::empty(field.dtype, Shape(std::move(dims)));
}

}  // namespace

std::string_view name(Split split) {
  return split == Split::train ? "train" : "test";
}

Dataset::Dataset(DatasetInfo info) : info_(std::move(info)) {
  check(info_);
}

Batch make_batch(const DatasetInfo& info, std::int64_t size) {
  Batch batch;
  batch.size = size;
  batch.inputs.reserve(info.inputs.size());
  for (const SampleField& field : info.inputs) batch.inputs.push_back(rows_of(field, size));
  batch.target = rows_of(info.target, size);
  for (const SampleField& field : info.further_targets) {
    batch.further_targets.push_back(rows_of(field, size));
  }
  return batch;
}

std::int64_t sample_count(const Batch& batch) {
  if (batch.size > 0) return batch.size;
  if (batch.size < 0 || !batch.target.defined() || batch.target.rank() == 0) {
    fail(ErrorKind::argument, "the batch has size ", batch.size,
         ", wanted the number of its samples");
  }
  return batch.target.shape()[0];
}

SampleRow::SampleRow(const Batch& batch, std::int64_t index)
    : batch_(&batch), index_(index), samples_(sample_count(batch)) {
  if (index < 0 || index >= samples_) {
    fail(ErrorKind::argument, "there is no sample ", index, " in a batch of ", samples_);
  }
}

const Tensor& SampleRow::field(const std::vector<Tensor>& all, std::size_t i,
                               std::string_view what) {
  if (i >= all.size()) {
    fail(ErrorKind::argument, "a sample has ", all.size(), " ", what, ", wanted number ", i,
         ", counted from 0");
  }
  return all[i];
}

std::vector<Tensor> targets_of(const Batch& batch) {
  std::vector<Tensor> targets{batch.target};
  targets.insert(targets.end(), batch.further_targets.begin(), batch.further_targets.end());
  return targets;
}

void check_labels(const Dataset& dataset, std::int64_t classes) {
  const DatasetInfo& info = dataset.info();
  if (info.classes == 0) {
    fail(ErrorKind::argument, "data set: the target is ",
         describe(info.target.dtype, info.target.shape), ", wanted a class index");
  }
  if (info.classes > classes) {
    fail(ErrorKind::argument, "data set: labels go up to ", info.classes - 1,
         ", but the model tells only ", classes, " classes apart; give it ", info.classes,
         " outputs");
  }
}

}  // namespace graft
