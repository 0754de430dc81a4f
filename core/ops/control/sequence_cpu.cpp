#include <algorithm>

#include "core/ops/registry.h"
#include "core/tensor/slices.h"

namespace graft {
namespace {

/// Number `index` of the call: one integer in [-count, count), from the end where negative.
std::int64_t position(const DynamicCall& call, int index, std::int64_t count) {
  const Tensor& tensor = call.tensor(index);
  if (tensor.size() != 1) call.fail(ErrorKind::shape, "the position is ", tensor);
  const std::int64_t at = to_int64(tensor).front();
  if (at < -count || at >= count) {
    call.fail(ErrorKind::argument, "position ", at, " out of range for ", count, " places");
  }
  return at < 0 ? at + count : at;
}

std::int64_t length(const Sequence& sequence) {
  return static_cast<std::int64_t>(sequence.items.size());
}

void check_item(const DynamicCall& call, const Sequence& sequence, const Datum& item) {
  if (item.is_tensor() && sequence.dtype != DType::undefined &&
      item.tensor().dtype() != sequence.dtype) {
    call.fail(ErrorKind::type, "the sequence holds ", sequence.dtype, ", the new item is ",
              item.tensor());
  }
}

std::vector<Datum> sequence_empty(const DynamicCall& call) {
  const std::int64_t dtype = call.attributes().get_int("dtype", static_cast<int>(DType::f32));
  if (dtype <= 0 || dtype > INT32_MAX || !is_known_dtype(static_cast<int>(dtype))) {
    call.fail(ErrorKind::type, "dtype is ", dtype, ", which is not an element type");
  }
  return {Sequence{{}, static_cast<DType>(dtype)}};
}

std::vector<Datum> sequence_construct(const DynamicCall& call) {
  Sequence result;
  for (int i = 0; i < call.input_count(); ++i) {
    check_item(call, result, call.at(i));
    result.items.push_back(call.at(i));
    if (i == 0 && call.at(i).is_tensor()) result.dtype = call.tensor(i).dtype();
  }
  return {std::move(result)};
}

std::vector<Datum> sequence_insert(const DynamicCall& call) {
  Sequence result = call.sequence(0);
  check_item(call, result, call.at(1));
  if (result.dtype == DType::undefined && call.at(1).is_tensor()) {
    result.dtype = call.tensor(1).dtype();
  }
  const std::int64_t count = length(result);
  // One place more than items, and -1 stands before the last item.
  std::int64_t at = count;
  if (call.has(2)) {
    const bool is_behind = to_int64(call.tensor(2)) == std::vector<std::int64_t>{count};
    at = is_behind ? count : position(call, 2, count);
  }
  result.items.insert(result.items.begin() + at, call.at(1));
  return {std::move(result)};
}

std::vector<Datum> sequence_erase(const DynamicCall& call) {
  Sequence result = call.sequence(0);
  const std::int64_t count = length(result);
  if (count == 0) call.fail(ErrorKind::argument, "the sequence is empty");
  result.items.erase(result.items.begin() + (call.has(1) ? position(call, 1, count) : count - 1));
  return {std::move(result)};
}

std::vector<Datum> sequence_at(const DynamicCall& call) {
  const Sequence& sequence = call.sequence(0);
  return {sequence.items[static_cast<std::size_t>(position(call, 1, length(sequence)))]};
}

std::vector<Datum> sequence_length(const DynamicCall& call) {
  return {Tensor::scalar(length(call.sequence(0)))};
}

/// Lengths of the parts: of one each without `split`, equal ones (the last may be shorter) for a
/// scalar, else as listed.
std::vector<std::int64_t> part_lengths(const DynamicCall& call, std::int64_t dim) {
  if (!call.has(1)) return std::vector<std::int64_t>(static_cast<std::size_t>(dim), 1);
  const Tensor& split = call.tensor(1);
  std::vector<std::int64_t> lengths = to_int64(split);
  std::int64_t sum = 0;
  if (split.rank() == 0) {
    const std::int64_t each = lengths.front();
    if (each < 1) call.fail(ErrorKind::shape, "split is ", each, ", wanted at least 1");
    lengths.clear();
    for (; sum < dim; sum += each) lengths.push_back(std::min(each, dim - sum));
    return lengths;
  }
  bool fits = true;
  for (const std::int64_t part : lengths) {
    fits = fits && part >= 0 && part <= dim - sum;
    if (fits) sum += part;
  }
  if (!fits || sum != dim) call.fail(ErrorKind::shape, "split does not add up to the dim of ", dim);
  return lengths;
}

std::vector<Datum> split_to_sequence(const DynamicCall& call) {
  const Tensor& x = call.tensor(0);
  const int axis =
      normalize_axis(call.attributes().get_int("axis", 0), x.rank(), call.node().label());
  const bool drops_axis = !call.has(1) && call.attributes().get_int("keepdims", 1) == 0;
  check_entries(x, axis);
  Sequence result{{}, x.dtype()};
  std::int64_t start = 0;
  for (const std::int64_t part : part_lengths(call, x.shape()[axis])) {
    result.items.emplace_back(drops_axis ? select(x, axis, start) : narrow(x, axis, start, part));
    start += part;
  }
  return {std::move(result)};
}

std::vector<Datum> concat_from_sequence(const DynamicCall& call) {
  std::vector<Tensor> parts;
  for (const Datum& item : call.sequence(0).items) parts.push_back(item.tensor());
  if (parts.empty()) call.fail(ErrorKind::argument, "the sequence is empty");
  const bool is_new = call.attributes().get_int("new_axis", 0) != 0;
  const int axis = normalize_axis(call.attributes().get_int("axis", 0),
                                  parts.front().rank() + (is_new ? 1 : 0), call.node().label());
  return {is_new ? stack(parts, axis) : concat(parts, axis)};
}

std::vector<Datum> first_input(const DynamicCall& call) {
  return {call.at(0)};
}

std::vector<Datum> has_element(const DynamicCall& call) {
  return {Tensor::scalar(call.has(0))};
}

std::vector<Datum> get_element(const DynamicCall& call) {
  if (!call.has(0)) call.fail(ErrorKind::argument, "the optional has no element");
  return {call.at(0)};
}

}  // namespace

void register_sequence_cpu(KernelRegistry& registry) {
  registry.add({.op = "SequenceEmpty", .run = sequence_empty});
  registry.add({.op = "SequenceConstruct", .run = sequence_construct});
  registry.add({.op = "SequenceInsert", .run = sequence_insert});
  registry.add({.op = "SequenceErase", .run = sequence_erase});
  registry.add({.op = "SequenceAt", .run = sequence_at});
  registry.add({.op = "SequenceLength", .run = sequence_length});
  registry.add({.op = "SplitToSequence", .run = split_to_sequence});
  registry.add({.op = "ConcatFromSequence", .run = concat_from_sequence});
  registry.add({.op = "Optional", .run = first_input});
  registry.add({.op = "OptionalHasElement", .run = has_element});
  registry.add({.op = "OptionalGetElement", .run = get_element});
  registry.add({.op = "Identity", .run = first_input});
}

}  // namespace graft
