#include "data/tensor_dataset.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"

namespace graft {
namespace {

class TensorDataset final : public Dataset {
 public:
  TensorDataset(DatasetInfo info, std::vector<NamedSamples> inputs, NamedSamples target,
                std::vector<NamedSamples> further)
      : Dataset(std::move(info)),
        inputs_(std::move(inputs)),
        target_(std::move(target)),
        further_(std::move(further)) {}

  void read(std::int64_t index, const SampleRow& row) const override {
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      visit_dtype(AllTypes{}, inputs_[i].values.dtype(),
                  [&]<class T>() { copy_sample(inputs_[i].values, index, row.input<T>(i)); });
    }
    visit_dtype(AllTypes{}, target_.values.dtype(),
                [&]<class T>() { copy_sample(target_.values, index, row.target<T>()); });
    for (std::size_t i = 0; i < further_.size(); ++i) {
      visit_dtype(AllTypes{}, further_[i].values.dtype(), [&]<class T>() {
        copy_sample(further_[i].values, index, row.further_target<T>(i));
      });
    }
  }

 private:
  template <class T>
  static void copy_sample(const Tensor& all, std::int64_t index, std::span<T> out) {
    const auto first = static_cast<std::size_t>(index) * out.size();
    std::ranges::copy(all.values<const T>().subspan(first, out.size()), out.begin());
  }

  std::vector<NamedSamples> inputs_;
  NamedSamples target_;
  std::vector<NamedSamples> further_;
};

/// Throws Error{type} naming the first integer that `wanted` cannot hold: a cast would wrap it.
void check_fits(const std::string& name, const Tensor& integers, DType wanted) {
  visit_dtype(IntegerTypes{}, integers.dtype(), [&]<class From>() {
    visit_dtype(IntegerTypes{}, wanted, [&]<class To>() {
      for (const From value : integers.values<const From>()) {
        if (std::in_range<To>(value)) continue;
        fail(ErrorKind::type, "tensor data set: '", name, "' is ", integers, " and holds ", +value,
             ", which does not fit into the ", wanted, " that the model takes");
      }
    });
  });
}

Tensor as_sample_type(const NamedSamples& samples) {
  const Tensor host = samples.values.to(cpu());
  const bool has_floats = is_float(host.dtype());
  if (!has_floats && !is_integer(host.dtype()) && host.dtype() != DType::boolean) {
    fail(ErrorKind::type, "tensor data set: '", samples.name, "' is ", host,
         ", wanted float, integer or bool elements");
  }
  DType wanted = samples.wanted;
  const bool is_number = visit_dtype(AllTypes{}, wanted, []<class T>() {});
  if (!is_number) wanted = has_floats ? DType::f32 : DType::i64;
  if (has_floats && !is_float(wanted)) {
    fail(ErrorKind::type, "tensor data set: '", samples.name, "' is ", host, ", wanted ", wanted,
         " elements");
  }
  if (host.dtype() == wanted) return host;
  check_fits(samples.name, host, wanted);
  return host.cast(wanted);
}

SampleField field_of(const NamedSamples& samples, std::int64_t count) {
  const Shape& shape = samples.values.shape();
  if (shape.rank() == 0 || shape[0] != count) {
    fail(ErrorKind::shape, "tensor data set: '", samples.name, "' is ", samples.values, ", wanted ",
         count, " samples along the first axis");
  }
  return {samples.name, samples.values.dtype(),
          Shape(std::vector<std::int64_t>(shape.begin() + 1, shape.end()))};
}

/// What DatasetInfo::classes says of these labels. Throws Error{argument} if one lies outside.
std::int64_t checked_classes(const NamedSamples& target, std::int64_t classes,
                             std::optional<std::int64_t> ignore_index) {
  const auto labels = target.values.values<const std::int64_t>();
  if (classes == 0 && !labels.empty()) {
    std::int64_t highest = 0;
    for (const std::int64_t label : labels) {
      if (label != ignore_index) highest = std::max(highest, label);
    }
    // The lesser one keeps the sum from overflowing; the search below reports such a label.
    classes = 1 + std::min(highest, INT64_MAX - 1);
  }
  const auto bad = std::ranges::find_if(labels, [&](std::int64_t label) {
    return label != ignore_index && (label < 0 || label >= classes);
  });
  if (bad != labels.end()) {
    fail(ErrorKind::argument, "tensor data set: label ", *bad, " of sample ", bad - labels.begin(),
         " in '", target.name, "' is out of range, wanted 0 to ", classes - 1);
  }
  const bool ignores = ignore_index && std::ranges::find(labels, *ignore_index) != labels.end();
  return ignores ? 0 : classes;
}

}  // namespace

std::shared_ptr<Dataset> tensor_dataset(std::vector<NamedSamples> inputs, NamedSamples target,
                                        std::int64_t classes, std::vector<NamedSamples> further,
                                        std::optional<std::int64_t> ignore_index) {
  for (NamedSamples& input : inputs) input.values = as_sample_type(input);
  for (NamedSamples& more : further) more.values = as_sample_type(more);
  target.values = as_sample_type(target);
  if (target.values.rank() == 0) {
    fail(ErrorKind::shape, "tensor data set: '", target.name, "' is ", target.values,
         ", wanted samples along the first axis");
  }
  DatasetInfo info;
  info.size = target.values.shape()[0];
  for (const NamedSamples& input : inputs) info.inputs.push_back(field_of(input, info.size));
  info.target = field_of(target, info.size);
  for (const NamedSamples& more : further) {
    info.further_targets.push_back(field_of(more, info.size));
  }
  const bool is_label = info.target.dtype == DType::i64 && info.target.shape.rank() == 0;
  info.classes = is_label ? checked_classes(target, classes, ignore_index) : classes;
  return std::make_shared<TensorDataset>(std::move(info), std::move(inputs), std::move(target),
                                         std::move(further));
}

}  // namespace graft
