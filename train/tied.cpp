#include "train/tied.h"

#include <cstring>
#include <set>

#include "core/base/error.h"
#include "core/ops/builder.h"

namespace graft {
namespace {

const std::vector<std::int64_t> kSwapped{1, 0};

bool same_bytes(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         (a.bytes() == 0 || std::memcmp(a.data(), b.data(), a.bytes()) == 0);
}

bool is_transpose(const Tensor& a, const Tensor& b) {
  if (a.shape().rank() != 2 || b.shape().rank() != 2 || a.dtype() != b.dtype()) return false;
  const std::int64_t rows = a.shape()[0];
  const std::int64_t columns = a.shape()[1];
  if (b.shape() != Shape({columns, rows})) return false;
  const std::size_t size = bytes_of(a.dtype(), 1);
  const auto* const from = static_cast<const std::byte*>(a.data());
  const auto* const to = static_cast<const std::byte*>(b.data());
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      const auto here = static_cast<std::size_t>(i * columns + j) * size;
      const auto there = static_cast<std::size_t>(j * rows + i) * size;
      if (std::memcmp(from + here, to + there, size) != 0) return false;
    }
  }
  return true;
}

Value* find_float_initializer(Graph& graph, const std::string& name) {
  Value* const value = graph.find(name);
  if (value == nullptr || !value->is_initializer() || !is_float(value->dtype())) {
    fail(ErrorKind::argument, "tied: '", name, "' is no float initializer of the model");
  }
  return value;
}

Tie tie(Graph& graph, Value* leader, Value* follower) {
  const Tensor& content = follower->initializer();
  const bool transposed = !same_bytes(leader->initializer(), content);
  if (transposed && !is_transpose(leader->initializer(), content)) {
    fail(ErrorKind::argument, "tied: '", follower->name(), "' ", describe(content),
         " holds neither the content of '", leader->name(), "' ", describe(leader->initializer()),
         " nor its transpose");
  }
  Value* replacement = leader;
  if (transposed) {
    Builder builder(graph, graph.nodes().empty() ? nullptr : graph.nodes().front().get());
    replacement = transpose(builder.expr(leader), kSwapped).value();
  }
  graph.replace_all_uses(follower, replacement);
  return {leader->name(), follower->name(), transposed, content};
}

}  // namespace

bool are_copies(const Tensor& a, const Tensor& b) {
  return same_bytes(a, b) || is_transpose(a, b);
}

std::vector<Tie> tie_initializers(Graph& graph,
                                  const std::vector<std::vector<std::string>>& groups) {
  std::vector<Tie> ties;
  std::set<std::string> seen;
  for (const std::vector<std::string>& group : groups) {
    Value* leader = nullptr;
    for (const std::string& name : group) {
      Value* const value = find_float_initializer(graph, name);
      if (!seen.insert(name).second) fail(ErrorKind::argument, "tied: '", name, "' occurs twice");
      if (leader == nullptr) {
        leader = value;
      } else {
        ties.push_back(tie(graph, leader, value));
      }
    }
  }
  return ties;
}

void update_follower(Graph& graph, const Tie& tie, Value* updated_leader) {
  Value* follower = graph.find(tie.follower);
  if (follower == nullptr) {
    follower = graph.add_initializer(tie.follower, tie.follower_content);
  }
  follower->is_variable = true;
  Builder builder(graph, nullptr, "update/");
  const Expr leader = cast(builder.expr(updated_leader), follower->dtype());
  call_internal("Assign",
                {builder.expr(follower), tie.transposed ? transpose(leader, kSwapped) : leader});
}

}  // namespace graft
