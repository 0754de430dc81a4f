#include "tools/graft/net_drawing.h"

#include <algorithm>
#include <map>
#include <vector>

#include "core/base/error.h"
#include "tools/graft/html.h"

namespace graft::cli {
namespace {

constexpr std::size_t kMostNodes = 300;
constexpr int kWidth = 150;
constexpr int kHeight = 34;
constexpr int kRankHeight = 52;
constexpr int kColumnWidth = 166;

struct Place {
  int rank = 0;
  int column = 0;
};

/// Nodes by rows: each one row below the lowest that it reads.
class Layout {
 public:
  explicit Layout(const Graph& graph) {
    for (const auto& node : graph.nodes()) {
      if (node->is("Constant")) continue;
      if (nodes_.size() == kMostNodes) {
        ++left_out_;
        continue;
      }
      Place place;
      for (const Value* input : node->inputs()) {
        const auto source = places_.find(input == nullptr ? nullptr : input->producer());
        if (source != places_.end()) place.rank = std::max(place.rank, source->second.rank + 1);
      }
      const auto rank = static_cast<std::size_t>(place.rank);
      if (rank >= columns_.size()) columns_.resize(rank + 1, 0);
      place.column = columns_[rank]++;
      places_[node.get()] = place;
      nodes_.push_back(node.get());
    }
  }

  const std::vector<const Node*>& nodes() const { return nodes_; }
  std::size_t left_out() const { return left_out_; }
  int width() const {
    return columns_.empty() ? kColumnWidth : kColumnWidth * *std::ranges::max_element(columns_);
  }
  int height() const { return kRankHeight * static_cast<int>(columns_.size()) + 8; }
  bool holds(const Node* node) const { return places_.contains(node); }

  /// The middle of the box, and its top.
  std::pair<int, int> at(const Node* node) const {
    const Place& place = places_.at(node);
    const int row = kColumnWidth * columns_[static_cast<std::size_t>(place.rank)];
    return {(width() - row) / 2 + kColumnWidth * place.column + kColumnWidth / 2,
            place.rank * kRankHeight + 4};
  }

 private:
  std::vector<const Node*> nodes_;
  std::map<const Node*, Place> places_;
  /// Nodes in each row.
  std::vector<int> columns_;
  std::size_t left_out_ = 0;
};

std::string edges_to(const Node& node, const Layout& layout) {
  std::string svg;
  const auto [x1, y1] = layout.at(&node);
  for (const Value* input : node.inputs()) {
    if (input == nullptr || !layout.holds(input->producer())) continue;
    const auto [x0, top] = layout.at(input->producer());
    const int y0 = top + kHeight;
    svg += text("<path class=\"edge\" d=\"M", x0, ' ', y0, " C", x0, ' ', (y0 + y1) / 2, ' ', x1,
                ' ', (y0 + y1) / 2, ' ', x1, ' ', y1, "\"/>");
  }
  return svg;
}

std::string box_of(const Node& node, const Layout& layout) {
  const auto [x, y] = layout.at(&node);
  const bool has_type = node.output() != nullptr && node.output()->shape().has_value();
  const std::string type = has_type ? text(node.output()->type()) : "";
  std::string svg =
      text("<g><title>", escaped(node.label()), "</title><rect class=\"node\" x=\"", x - kWidth / 2,
           "\" y=\"", y, "\" width=\"", kWidth, "\" height=\"", kHeight, "\" rx=\"4\"/>");
  svg += text("<text x=\"", x, "\" y=\"", y + 14, "\" text-anchor=\"middle\" class=\"op\">",
              escaped(node.op_type()), "</text>");
  return svg + text("<text x=\"", x, "\" y=\"", y + 28, "\" text-anchor=\"middle\">",
                    escaped(type.substr(0, 24)), "</text></g>");
}

}  // namespace

std::string svg_net(const Graph& graph) {
  const Layout layout(graph);
  std::string svg =
      text("<svg class=\"net\" width=\"", layout.width(), "\" height=\"", layout.height(),
           "\" viewBox=\"0 0 ", layout.width(), ' ', layout.height(), "\" role=\"img\">");
  for (const Node* node : layout.nodes()) svg += edges_to(*node, layout);
  for (const Node* node : layout.nodes()) svg += box_of(*node, layout);
  svg += "</svg>";
  if (layout.left_out() > 0)
    svg += text("<p>", layout.left_out(), " more nodes are not drawn.</p>");
  return svg;
}

}  // namespace graft::cli
