#include "train/layer_order.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <numeric>
#include <unordered_map>

#include "core/graph/reads.h"

namespace graft {
namespace {

using Places = std::unordered_map<const Node*, std::size_t>;

/// Where values that nodes give are first read by what does more than rearrange them.
using FirstReads = std::unordered_map<const Value*, std::size_t>;

/// Of a value. `later`: of those that its readers give.
std::size_t first_read(const Value& value, const Places& places, const FirstReads& later) {
  std::size_t first = places.size();
  for (const Use& use : value.uses()) {
    const auto at = places.find(use.node);
    if (at == places.end()) continue;  // in a body
    if (!only_rearranges(use)) {
      first = std::min(first, at->second);
      continue;
    }
    for (int i = 0; i < use.node->output_count(); ++i) {
      const Value* const moved = use.node->output(i);
      if (moved != nullptr) first = std::min(first, later.at(moved));
    }
  }
  return first;
}

/// From the last node to the first: a file may rearrange along many ways, and in long chains.
FirstReads first_reads(const Graph& graph, const Places& places) {
  FirstReads reads;
  for (auto node = graph.nodes().rbegin(); node != graph.nodes().rend(); ++node) {
    for (int i = 0; i < (*node)->output_count(); ++i) {
      const Value* const output = (*node)->output(i);
      if (output != nullptr) reads.emplace(output, first_read(*output, places, reads));
    }
  }
  return reads;
}

/// "encoder.layer.3" of "encoder.layer.3.fc.weight"; empty for a name without parts.
std::string layer_name(const std::string& name) {
  constexpr const char* kSeparators = "./";
  for (std::size_t begin = 0, end = name.find_first_of(kSeparators); end != std::string::npos;
       begin = end + 1, end = name.find_first_of(kSeparators, begin)) {
    const bool is_number =
        end > begin && std::all_of(name.begin() + static_cast<std::ptrdiff_t>(begin),
                                   name.begin() + static_cast<std::ptrdiff_t>(end),
                                   [](unsigned char c) { return std::isdigit(c) != 0; });
    if (is_number) return name.substr(0, end);
  }
  const std::size_t last = name.find_last_of(kSeparators);
  return last == std::string::npos ? std::string() : name.substr(0, last);
}

}  // namespace

std::vector<int> layer_order(const Graph& graph, const std::vector<std::string>& parameters) {
  Places places;
  for (const auto& node : graph.nodes()) places.emplace(node.get(), places.size());
  const FirstReads later = first_reads(graph, places);
  std::vector<std::size_t> reads;
  for (const std::string& name : parameters) {
    reads.push_back(first_read(*graph.find(name), places, later));
  }
  std::vector<std::size_t> order(parameters.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return reads[i]; });

  std::vector<std::string> names(parameters.size());
  std::string next;
  for (auto at = order.rbegin(); at != order.rend(); ++at) {
    const std::string own = layer_name(parameters[*at]);
    if (!own.empty()) next = own;
    names[*at] = next.empty() ? text("node ", reads[*at]) : next;
  }
  std::map<std::string, int> numbers;
  std::vector<int> layers(parameters.size());
  for (const std::size_t i : order) {
    layers[i] = numbers.try_emplace(names[i], static_cast<int>(numbers.size())).first->second;
  }
  return layers;
}

}  // namespace graft
