#include "tools/graft/layer_table.h"

#include <algorithm>
#include <array>
#include <iomanip>
#include <iostream>
#include <unordered_set>

#include "core/ops/cost.h"
#include "tools/graft/format_internal.h"

namespace graft::cli {
namespace {

using Row = std::array<std::string, 6>;

/// Numbers that no node before has read.
std::int64_t new_parameters(const Node& node, std::unordered_set<const Value*>& seen) {
  std::int64_t count = 0;
  for (const Value* input : node.inputs()) {
    if (input == nullptr || !input->is_initializer() || !is_float(input->dtype())) continue;
    if (seen.insert(input).second) count += input->initializer().size();
  }
  return count;
}

Row row_of(const Node& node, std::unordered_set<const Value*>& seen) {
  const Value* const output = node.output();
  const std::int64_t parameters = new_parameters(node, seen);
  const std::optional<std::int64_t> macs = node_multiply_adds(node);
  const bool is_known = output != nullptr && output->shape() && output->shape()->known();
  return {output == nullptr ? "" : output->name(),
          node.op_type(),
          output == nullptr ? "" : text(output->type()),
          parameters == 0 ? "" : with_commas(parameters),
          macs.value_or(0) == 0 ? "" : with_commas(*macs),
          is_known ? with_commas(static_cast<std::int64_t>(output->bytes())) : ""};
}

}  // namespace

void print_layers(const Findings& found) {
  if (found.bound == nullptr) {
    std::cerr << "graft: no table: " << found.obstacle << '\n';
    return;
  }
  std::vector<Row> rows{{"value", "op", "shape", "parameters", "multiply-adds", "bytes"}};
  std::unordered_set<const Value*> seen;
  for (const auto& node : found.bound->nodes()) rows.push_back(row_of(*node, seen));
  std::array<std::size_t, 6> widths{};
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  constexpr std::size_t kTexts = 3;  // columns before those of numbers
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      std::cout << (i == 0 ? "" : "  ") << (i < kTexts ? std::left : std::right)
                << std::setw(static_cast<int>(widths[i])) << row[i];
    }
    std::cout << '\n';
  }
}

}  // namespace graft::cli
