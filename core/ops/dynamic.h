#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "core/graph/node.h"
#include "core/tensor/datum.h"

namespace graft {

// The second form of kernel, for ops that no plan can hold: those whose outputs' shapes depend on
// the elements of inputs (NonZero, Unique, ...), and those that take or give strings, sequences,
// optionals and maps. A plan ends before such a node; the session calls its dynamic kernel with the
// data, and plans what follows once the kernel's results, and so all shapes, are known.
//
// To write one: set `.is_dynamic` in the op's row, and register a function of this form in
// register_<family>_cpu. Inference says what it can (the rank, the element type). An op that needs
// this form for strings alone (Equal, Identity) keeps its row and its kernels and adds a dynamic
// one, which is called where an input or output is a string tensor.

/// One call. Everything lies on the CPU.
class DynamicCall {
 public:
  DynamicCall(const Node& node, std::span<const Datum> inputs) : node_(node), inputs_(inputs) {}

  const Node& node() const { return node_; }
  const Attributes& attributes() const { return node_.attributes; }
  int input_count() const { return static_cast<int>(inputs_.size()); }
  /// False where the input is left out, and for an optional without element.
  bool has(int index) const { return !at(index).is_nothing(); }
  /// Nothing when left out.
  const Datum& at(int index) const;
  /// Throws Error{type} if the input is left out or no tensor.
  const Tensor& tensor(int index) const;
  /// Throws Error{type} if the input is left out or no sequence.
  const Sequence& sequence(int index) const;

  /// Throws Error{kind}; the text starts with the node's label.
  template <class... Args>
  [[noreturn]] void fail(ErrorKind kind, const Args&... args) const {
    graft::fail(kind, node_.label(), ": ", args...);
  }

 private:
  const Node& node_;
  std::span<const Datum> inputs_;
};

/// Returns one result an output, in order; those past the end are nothing. May allocate. Throws
/// Error{shape}, Error{type} or Error{argument} for data that do not fit.
using DynamicKernel = std::vector<Datum> (*)(const DynamicCall& call);

struct DynamicKernelDef {
  std::string_view op;
  std::string_view domain = "";
  DynamicKernel run;
};

/// Calls the node's dynamic kernel. Throws Error{unsupported} if it has none.
std::vector<Datum> call_dynamic(const Node& node, std::span<const Datum> inputs);

}  // namespace graft
