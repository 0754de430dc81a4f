#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/graph/model.h"
#include "core/layers/initializer.h"

namespace graft::edit {

struct HeadOptions {
  /// The graph output whose head it is; may be empty if there is only one.
  std::string output{};
  /// Starts the names of the new parameters: "head" makes head.weight and head.bias. Empty: they
  /// get the names of the old ones, which files without names make up.
  std::string name{};
  std::uint64_t seed = 0;
  /// Of the weight; without one, as torch.nn.Linear and Conv2d start.
  std::optional<Init> init{};
};

/// What `replace_head` did.
struct ReplacedHead {
  std::string layer;  ///< "Gemm node 'fc'"
  std::int64_t features = 0;
  std::int64_t old_classes = 0;
  std::int64_t classes = 0;
  std::vector<std::string> parameters{};
  /// What stands behind the head and stays, by labels: a Softmax, say.
  std::vector<std::string> kept{};
};

/// Gives the last layer with weights that makes an output, a Gemm, MatMul or Conv, fresh weights
/// for `classes` classes, and a bias where it has one. What stands behind it stays; the target of a
/// Reshape there follows. Types that the model records are inferred anew from there on.
///
/// Throws Error{argument} if the output is unknown or `classes` below 1; Error{unsupported}, naming
/// node and remedy, if the last layer is another, if its weight is quantized or computed, if other
/// layers reach the output beside it, or if what stands behind it holds numbers for the old
/// classes. A call that throws leaves the model as it was.
ReplacedHead replace_head(Model& model, std::int64_t classes, const HeadOptions& options = {});

}  // namespace graft::edit
