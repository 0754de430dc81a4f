#pragma once

#include <memory>
#include <string_view>
#include <variant>
#include <vector>

#include "core/tensor/tensor.h"

namespace graft {

class Datum;

/// A list of data, all of one kind: what ONNX calls a sequence.
struct Sequence {
  std::vector<Datum> items{};
  /// The element type of its tensors; undefined when not known. An empty sequence is written so.
  DType dtype = DType::undefined;
};

/// `keys`: i64 or strings [N]; `values`: [N]. ONNX-ML's ZipMap makes these.
struct Dictionary {
  Tensor keys;
  Tensor values;
};

/// What an edge of a graph carries where it need not be a tensor: nothing (a left-out input, an
/// optional without element), a tensor, a sequence or a map. An optional that has an element is
/// that element. Cheap to copy: elements and items are shared and never changed.
class Datum {
 public:
  Datum() = default;
  Datum(Tensor tensor) {  // NOLINT: a tensor is one
    if (tensor.defined()) content_ = std::move(tensor);
  }
  Datum(Sequence sequence)  // NOLINT
      : content_(std::make_shared<const Sequence>(std::move(sequence))) {}
  Datum(Dictionary dictionary)  // NOLINT
      : content_(std::make_shared<const Dictionary>(std::move(dictionary))) {}

  bool is_nothing() const { return std::holds_alternative<std::monostate>(content_); }
  bool is_tensor() const { return std::holds_alternative<Tensor>(content_); }
  bool is_sequence() const { return std::holds_alternative<SharedSequence>(content_); }
  bool is_dictionary() const { return std::holds_alternative<SharedDictionary>(content_); }

  /// Each throws Error{type} if this is of another kind.
  const Tensor& tensor() const;
  const Sequence& sequence() const;
  const Dictionary& dictionary() const;

 private:
  using SharedSequence = std::shared_ptr<const Sequence>;
  using SharedDictionary = std::shared_ptr<const Dictionary>;

  std::variant<std::monostate, Tensor, SharedSequence, SharedDictionary> content_;
};

/// "f32[2,3]", "sequence of 3", "map of 4", "nothing".
std::string describe(const Datum& datum);

}  // namespace graft
