#include <algorithm>
#include <limits>

#include "core/base/at.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

struct Box {
  double x_min, x_max, y_min, y_max;

  double area() const { return (x_max - x_min) * (y_max - y_min); }
};

/// [y1,x1,y2,x2], any two opposite corners; with `centered` [x,y,width,height].
Box box_from(const double* values, bool centered) {
  if (centered) {
    const double half_width = values[2] / 2;
    const double half_height = values[3] / 2;
    return {values[0] - half_width, values[0] + half_width, values[1] - half_height,
            values[1] + half_height};
  }
  return {std::min(values[1], values[3]), std::max(values[1], values[3]),
          std::min(values[0], values[2]), std::max(values[0], values[2])};
}

/// Intersection over union; 0 for boxes without area.
double overlap(const Box& a, const Box& b) {
  const double width = std::min(a.x_max, b.x_max) - std::max(a.x_min, b.x_min);
  const double height = std::min(a.y_max, b.y_max) - std::max(a.y_min, b.y_min);
  if (!(width > 0) || !(height > 0) || !(a.area() > 0) || !(b.area() > 0)) return 0;
  const double intersection = width * height;
  return intersection / (a.area() + b.area() - intersection);
}

struct Limits {
  std::int64_t most = 0;
  double overlap = 0;
  double score = -std::numeric_limits<double>::infinity();
};

/// Indices of the boxes that are kept, by falling score; of equal scores the first box wins.
std::vector<std::int64_t> keep(const std::vector<Box>& boxes, std::span<const double> scores,
                               const Limits& limits) {
  std::vector<std::int64_t> order;
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    if (scores[i] > limits.score) order.push_back(static_cast<std::int64_t>(i));
  }
  const auto score = [&](std::int64_t i) { return at(scores, i); };
  std::ranges::stable_sort(order, std::ranges::greater{}, score);
  std::vector<std::int64_t> kept;
  for (const std::int64_t candidate : order) {
    if (static_cast<std::int64_t>(kept.size()) >= limits.most) break;
    const Box& box = at(boxes, candidate);
    const bool is_covered = std::ranges::any_of(kept, [&](std::int64_t other) {
      // As in f32, in which thresholds are given.
      const double found = overlap(box, at(boxes, other));
      return static_cast<float>(found) > static_cast<float>(limits.overlap);
    });
    if (!is_covered) kept.push_back(candidate);
  }
  return kept;
}

Limits limits_of(const DynamicCall& call) {
  Limits limits;
  const auto number = [&](int index) {
    const Tensor& tensor = call.tensor(index);
    if (tensor.size() != 1) call.fail(ErrorKind::shape, "input ", index, " is ", tensor);
    return to_double(tensor).front();
  };
  if (call.has(2)) limits.most = to_int64(call.tensor(2)).at(0);
  if (call.has(3)) limits.overlap = number(3);
  if (call.has(4)) limits.score = number(4);
  return limits;
}

std::vector<Datum> non_max_suppression(const DynamicCall& call) {
  const Shape& boxes_shape = call.tensor(0).shape();
  const Shape& scores_shape = call.tensor(1).shape();
  if (boxes_shape.rank() != 3 || scores_shape.rank() != 3 || boxes_shape[2] != 4 ||
      boxes_shape[0] != scores_shape[0] || boxes_shape[1] != scores_shape[2]) {
    call.fail(ErrorKind::shape, "boxes are ", boxes_shape, " and scores ", scores_shape,
              ", wanted [B,N,4] and [B,C,N]");
  }
  if (call.has(2) && call.tensor(2).size() != 1) {
    call.fail(ErrorKind::shape, "max_output_boxes_per_class is ", call.tensor(2));
  }
  const Limits limits = limits_of(call);
  const bool centered = call.attributes().get_int("center_point_box", 0) != 0;
  const std::vector<double> corners = to_double(call.tensor(0));
  const std::vector<double> scores = to_double(call.tensor(1));
  const auto count = static_cast<std::size_t>(boxes_shape[1]);
  std::vector<std::int64_t> selected;
  // Without scores there may be any number of batches and classes.
  const std::int64_t batches = scores.empty() ? 0 : boxes_shape[0];
  for (std::int64_t batch = 0; batch < batches; ++batch) {
    std::vector<Box> boxes;
    for (std::size_t i = 0; i < count; ++i) {
      boxes.push_back(
          box_from(corners.data() + (static_cast<std::size_t>(batch) * count + i) * 4, centered));
    }
    for (std::int64_t label = 0; label < scores_shape[1]; ++label) {
      const auto row = static_cast<std::size_t>(batch * scores_shape[1] + label);
      const std::span<const double> own(scores.data() + row * count, count);
      for (const std::int64_t box : keep(boxes, own, limits)) {
        selected.insert(selected.end(), {batch, label, box});
      }
    }
  }
  return {Tensor::from({static_cast<std::int64_t>(selected.size()) / 3, 3}, selected)};
}

}  // namespace

void register_non_max_suppression_cpu(KernelRegistry& registry) {
  registry.add({.op = "NonMaxSuppression", .run = non_max_suppression});
}

}  // namespace graft
