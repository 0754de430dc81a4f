#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/graph/model.h"
#include "core/ops/builder.h"

namespace graft::testing {

/// A model of a few kilobytes that asks for gigabytes or minutes.
struct Bomb {
  std::string name;
  Model (*make)();
};

/// Those whose results double, broadcast or repeat.
std::vector<Bomb> growing_bombs();
/// Those with much to compute for small results.
std::vector<Bomb> working_bombs();
/// Those of large tables, and of many small passes over one tensor.
std::vector<Bomb> table_bombs();
/// Those that name large numbers.
std::vector<Bomb> asking_bombs();
/// Those of bodies, loops and functions.
std::vector<Bomb> nesting_bombs();

/// Builds a small net that trains, y = x w + bombs, so that all of `graft inspect` goes over it.
class BombBuilder {
 public:
  BombBuilder();

  Graph& graph() { return model_.graph(); }
  Model& model() { return model_; }

  Value* ints(const std::vector<std::int64_t>& values);
  Value* number(float value);
  Value* texts(const Shape& shape, std::string_view text);
  /// A tensor of zeros that the graph itself makes.
  Value* zeros(const Shape& shape);
  Value* op(std::string_view op, const std::vector<Value*>& inputs, Attributes attributes = {},
            int outputs = 1);
  /// Lets the model's output depend on `value`.
  void add(Value* value);

  Model finish();

 private:
  Model model_;
  Builder builder_;
  Value* sum_ = nullptr;
};

}  // namespace graft::testing
