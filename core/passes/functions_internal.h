#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "core/graph/model.h"

namespace graft::passes {

/// The functions that a model defines or that a reader attached, and calls of them.
class Functions {
 public:
  explicit Functions(const Model& model);

  /// Null when `node` calls none.
  const Function* find(const Node& node) const;

 private:
  std::map<std::pair<std::string, std::string>, const Function*> by_name_;
};

/// The version of the standard op set in which the function's body is written.
std::int64_t opset_of(const Function& function);

/// A copy of the function's body for one call: attributes that refer to the function's have the
/// call's values, else the default ones; those that have neither are left out.
std::unique_ptr<Graph> body_for_call(const Function& function, const Node& call);

}  // namespace graft::passes
