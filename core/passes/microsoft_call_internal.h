#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/ops/builder.h"

namespace graft::passes {

/// A node of com.microsoft that is being written in standard ops, before it.
class MicrosoftCall {
 public:
  /// `block`: how many channels a block has, of images in blocks.
  MicrosoftCall(const Node& node, Builder& builder, std::int64_t block = 1)
      : node_(node), builder_(builder), block_(block) {}

  const Node& node() const { return node_; }
  Builder& builder() const { return builder_; }
  std::int64_t block() const { return block_; }
  bool has(int index) const { return node_.input(index) != nullptr; }
  /// Empty where it is left out. Throws Error{unsupported} if its element type is not known.
  Expr input(int index) const;
  /// The same, but it must be there: Error{model}.
  Expr required(int index) const;
  std::int64_t integer(std::string_view name, std::int64_t fallback = 0) const {
    return node_.attributes.get_int(name, fallback);
  }
  double number(std::string_view name, float fallback) const {
    return static_cast<double>(node_.attributes.get_float(name, fallback));
  }
  /// Throws Error{unsupported} if the input is there.
  void refuse_input(int index, std::string_view what) const;
  /// Throws Error{unsupported} unless the attribute is absent or has that value.
  void require(std::string_view name, std::int64_t value) const;
  template <class... Args>
  [[noreturn]] void unsupported(const Args&... args) const {
    fail(ErrorKind::unsupported, node_.label(), ": ", args...);
  }

  /// The rank of a value, and a dim. Throw Error{unsupported} where they are not known.
  int rank(const Expr& x) const;
  std::int64_t dim(const Expr& x, int axis) const;
  /// x with the last two axes swapped.
  Expr swapped(const Expr& x) const;
  /// 0, 1, ... for the size of x's axis: i64.
  Expr range_along(const Expr& x, int axis) const;
  Expr ints(const std::vector<std::int64_t>& values) const {
    return constant_ints(builder_, values);
  }
  /// The target as ONNX has it: 0 copies a dim, -1 takes what is left.
  Expr reshaped(const Expr& x, const std::vector<std::int64_t>& target) const {
    return call("Reshape", {x, ints(target)});
  }

 private:
  const Node& node_;
  Builder& builder_;
  std::int64_t block_;
};

/// One value an output, or empty ones for those that are not computed.
using Outputs = std::vector<Expr>;

/// What an activation of that name makes of x. `numbers`: its settings, in the order of its
/// attributes.
Expr activated(const MicrosoftCall& call, const Expr& x, const std::string& name,
               const std::vector<float>& numbers);
/// A convolution by `weight`, plus what the fourth input holds, activated.
Expr fused_conv(const MicrosoftCall& call, const Expr& weight);

}  // namespace graft::passes
