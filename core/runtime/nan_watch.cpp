#include "core/runtime/nan_watch.h"

#include <algorithm>
#include <cmath>

#include "core/base/at.h"
#include "core/base/error.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

double as_double(double number) {
  return number;
}
template <class T>
double as_double(T number) {
  return static_cast<double>(static_cast<float>(number));
}

template <class T>
NumberRange range_of(std::span<const T> numbers) {
  NumberRange range;
  for (const T number : numbers) {
    const double exact = as_double(number);
    if (std::isnan(exact)) {
      ++range.nans;
    } else if (std::isinf(exact)) {
      ++range.infinities;
    } else if (range.least > range.greatest) {
      range.least = range.greatest = exact;
    } else {
      range.least = std::min(range.least, exact);
      range.greatest = std::max(range.greatest, exact);
    }
  }
  return range;
}

/// "'x' f32[2,3] in [-1, 2], 1 NaN".
std::string shown(const Value& value, const Tensor& tensor, const NumberRange& range) {
  std::string text = graft::text("'", value.name(), "' ", describe(tensor));
  if (!is_float(tensor.dtype())) return text;
  if (range.least <= range.greatest) {
    text += graft::text(" in [", range.least, ", ", range.greatest, "]");
  }
  if (range.nans > 0) text += graft::text(", ", range.nans, " NaN");
  if (range.infinities > 0) text += graft::text(", ", range.infinities, " infinite");
  return text;
}

bool any(const std::vector<NumberRange>& ranges, std::int64_t NumberRange::*count) {
  return std::ranges::any_of(ranges, [&](const NumberRange& range) { return range.*count > 0; });
}

std::vector<NumberRange> ranges_of(std::span<const Tensor> tensors) {
  std::vector<NumberRange> ranges;
  for (const Tensor& tensor : tensors) ranges.push_back(number_range(tensor));
  return ranges;
}

}  // namespace

NumberRange number_range(const Tensor& tensor) {
  NumberRange range;
  if (!tensor.defined() || !is_float(tensor.dtype())) return range;
  const Tensor host = tensor.to(cpu());
  visit_dtype(TypeList<float, double, Half, BFloat16>{}, host.dtype(),
              [&]<class T>() { range = range_of<T>(host.values<const T>()); });
  return range;
}

std::vector<Tensor> operands_of(const Node& node, bool of_outputs, std::span<void* const> places,
                                Device& device) {
  const int count = of_outputs ? node.output_count() : node.input_count();
  const int first = of_outputs ? node.input_count() : 0;
  std::vector<Tensor> tensors(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    const Value* const value = of_outputs ? node.output(i) : node.input(i);
    if (value == nullptr) continue;
    at(tensors, i) =
        Tensor::view(value->dtype(), value->known_shape(), at(places, first + i), nullptr, device);
  }
  return tensors;
}

void NanWatch::before(const Node& node, const std::vector<Tensor>& inputs) {
  ++step_;
  inputs_ = inputs;
  ranges_ = ranges_of(inputs);
  // A node that made one would have been named.
  for (std::size_t i = 0; i < inputs.size() && given_nan_.empty(); ++i) {
    if (ranges_[i].nans == 0) continue;
    given_nan_ =
        graft::text(shown(*node.input(static_cast<int>(i)), inputs[i], ranges_[i]), ", which ",
                    node.label(), " reads, comes from the data or the weights");
  }
}

void NanWatch::after(const Node& node, const std::vector<Tensor>& outputs) {
  const std::vector<NumberRange> made = ranges_of(outputs);
  const bool read_nan = any(ranges_, &NumberRange::nans);
  const bool read_infinity = any(ranges_, &NumberRange::infinities);
  if (any(made, &NumberRange::nans) && !read_nan) {
    fail(ErrorKind::numeric, report(node, outputs, true),
         first_infinity_.empty() ? "" : "; before it, " + first_infinity_);
  }
  const bool made_infinity = any(made, &NumberRange::infinities);
  if (made_infinity && first_infinity_.empty() && !read_infinity) {
    first_infinity_ = report(node, outputs, false);
  }
  const OpDef* const def = OpRegistry::instance().find(node);
  if (def == nullptr || !def->updates_state()) return;
  const std::string& cause = cause_of(made);
  if (!cause.empty()) fail(ErrorKind::numeric, cause, "; it has reached ", node.label());
}

void NanWatch::end(std::span<const Tensor> outputs) const {
  const std::string& cause = cause_of(ranges_of(outputs));
  if (!cause.empty()) fail(ErrorKind::numeric, cause);
}

const std::string& NanWatch::cause_of(const std::vector<NumberRange>& made) const {
  static const std::string none;
  if (any(made, &NumberRange::nans)) return given_nan_;
  return any(made, &NumberRange::infinities) ? first_infinity_ : none;
}

/// "Log node 'log1' (3 of 12 nodes that run) made the first NaN: 'y' f32[2] in [0, 1], 1 NaN, from
/// 'x' f32[2] in [-1, 2]".
std::string NanWatch::report(const Node& node, const std::vector<Tensor>& outputs, bool nan) const {
  std::string text = graft::text(node.label(), " (", step_, " of ", step_count_,
                                 " nodes that run) made the first ", nan ? "NaN" : "infinity");
  const char* before = ": ";
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].defined()) continue;
    const Value& value = *node.output(static_cast<int>(i));
    text += before + shown(value, outputs[i], number_range(outputs[i]));
    before = ", ";
  }
  before = ", from ";
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (!inputs_[i].defined()) continue;
    text += before + shown(*node.input(static_cast<int>(i)), inputs_[i], ranges_[i]);
    before = ", ";
  }
  return text;
}

}  // namespace graft
