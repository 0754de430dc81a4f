#include "tools/graft/text_chart.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/base/error.h"
#include "tools/graft/format_internal.h"
#include "tools/graft/summary.h"

namespace graft::cli {
namespace {

/// Where `value` lies between 0 and 1. Halves of the numbers that a file may hold do not overflow.
double share_of(double value, const Range& range) {
  const double length = range.high / 2 - range.low / 2;
  return length > 0 ? std::clamp((value / 2 - range.low / 2) / length, 0.0, 1.0) : 0.5;
}

/// Cells of the chart, each of `wide` x `high` dots. In Braille a cell is a set of dots, without it
/// a letter.
class Canvas {
 public:
  Canvas(std::size_t columns, std::size_t rows, bool braille)
      : columns_(columns), rows_(rows), braille_(braille), cells_(columns * rows) {}

  double wide() const { return static_cast<double>(columns_ * (braille_ ? 2 : 1)) - 1.0; }
  double high() const { return static_cast<double>(rows_ * (braille_ ? 4 : 1)) - 1.0; }

  /// x from the left, y from the bottom.
  void dot(double x, double y, char letter) {
    const auto column = static_cast<std::size_t>(std::lround(x));
    const auto row = static_cast<std::size_t>(std::lround(high() - y));
    if (!braille_) {
      cells_[row * columns_ + column] = static_cast<unsigned char>(letter);
      return;
    }
    // Unicode numbers the dots of a cell down its left side, down its right side, then the last
    // row.
    static constexpr unsigned char kDots[4][2] = {{1, 8}, {2, 16}, {4, 32}, {64, 128}};
    cells_[row / 4 * columns_ + column / 2] |= kDots[row % 4][column % 2];
  }

  void line(double x0, double y0, double x1, double y1, char letter) {
    const double steps = std::max({std::abs(x1 - x0), std::abs(y1 - y0), 1.0});
    for (double i = 0; i <= steps; ++i) {
      dot(x0 + (x1 - x0) * i / steps, y0 + (y1 - y0) * i / steps, letter);
    }
  }

  std::string row(std::size_t index) const {
    std::string result;
    for (std::size_t column = 0; column < columns_; ++column) {
      const unsigned cell = cells_[index * columns_ + column];
      if (!braille_) {
        result += cell == 0 ? ' ' : static_cast<char>(cell);
      } else if (cell == 0) {
        result += ' ';
      } else {  // U+2800 + cell in UTF-8
        result += '\xe2';
        result += static_cast<char>(0xa0U + (cell >> 6U));
        result += static_cast<char>(0x80U + (cell & 0x3fU));
      }
    }
    return result.substr(0, result.find_last_not_of(' ') + 1);
  }

 private:
  std::size_t columns_;
  std::size_t rows_;
  bool braille_;
  std::vector<unsigned char> cells_;
};

std::string short_number(double value) {
  return fixed(value, std::abs(value) < 10 ? 4 : 1);
}

std::string padded(const std::string& text, std::size_t width) {
  return std::string(width - std::min(width, text.size()), ' ') + text;
}

char letter_of(std::size_t curve) {
  return static_cast<char>('a' + curve % 26);
}

void draw(Canvas& canvas, const Curve& curve, const Range& x, const Range& y, char letter) {
  const auto place = [&](const std::pair<double, double>& point) {
    return std::pair(share_of(point.first, x) * canvas.wide(),
                     share_of(point.second, y) * canvas.high());
  };
  for (std::size_t i = 0; i < curve.points.size(); ++i) {
    const auto [x0, y0] = place(curve.points[i == 0 ? 0 : i - 1]);
    const auto [x1, y1] = place(curve.points[i]);
    canvas.line(x0, y0, x1, y1, letter);
  }
}

}  // namespace

std::string text_chart(std::span<const Curve> curves, const TextChartOptions& options) {
  const auto [x, y] = ranges_of(curves);
  if (x.low > x.high) return {};
  const std::size_t margin = std::max(short_number(y.low).size(), short_number(y.high).size());
  const std::size_t columns = std::max<std::size_t>(options.columns, margin + 12) - margin - 2;
  Canvas canvas(columns, options.rows, options.braille);
  std::string names;
  for (std::size_t i = 0; i < curves.size(); ++i) {
    draw(canvas, curves[i], x, y, letter_of(i));
    const std::string mark = options.braille ? "" : std::string(1, letter_of(i)) + ' ';
    names += (i == 0 ? "" : "  ") + mark + curves[i].name;
  }
  std::string result = wrapped(names, 0, options.columns, "  ") + '\n';
  for (std::size_t row = 0; row < options.rows; ++row) {
    const std::string label = row == 0                  ? short_number(y.high)
                              : row + 1 == options.rows ? short_number(y.low)
                                                        : "";
    result += padded(label, margin) + " |" + canvas.row(row) + '\n';
  }
  const std::string first = text(x.low);
  const std::string last = text("epoch ", x.high);
  return result + std::string(margin + 2, ' ') + first +
         padded(last, columns - std::min(columns, first.size())) + '\n';
}

}  // namespace graft::cli
