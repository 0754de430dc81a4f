#include "tools/graft/html.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <tuple>

#include "core/base/at.h"
#include "core/base/error.h"
#include "tools/graft/format_internal.h"
#include "tools/graft/plain_output.h"

namespace graft::cli {
namespace {

std::string base64(std::string_view bytes) {
  static constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string result;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t word = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      word = word << 8U | (k < count ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      result += k <= count ? kDigits[word >> (18U - 6U * k) & 63U] : '=';
    }
  }
  return result;
}

void append_bytes(std::string& bytes, std::uint32_t value, int count) {
  for (int i = 0; i < count; ++i)
    bytes += static_cast<char>(value >> (8U * static_cast<unsigned>(i)));
}

/// The smallest picture format that browsers read without compression: rows from the bottom, blue
/// first, each row filled up to four bytes.
std::string bmp(std::uint32_t width, std::uint32_t height, const std::vector<unsigned char>& bgr) {
  constexpr std::uint32_t kHeader = 54;
  const std::uint32_t row = (width * 3 + 3) / 4 * 4;
  std::string bytes = "BM";
  append_bytes(bytes, kHeader + row * height, 4);
  append_bytes(bytes, 0, 4);
  append_bytes(bytes, kHeader, 4);
  append_bytes(bytes, 40, 4);
  append_bytes(bytes, width, 4);
  append_bytes(bytes, height, 4);
  append_bytes(bytes, 1, 2);
  append_bytes(bytes, 24, 2);
  for (int i = 0; i < 6; ++i) append_bytes(bytes, 0, 4);
  for (std::uint32_t y = height; y-- > 0;) {
    const auto first = bgr.begin() + static_cast<std::ptrdiff_t>(y) * width * 3;
    bytes.append(first, first + static_cast<std::ptrdiff_t>(width) * 3);
    bytes.append(row - width * 3, '\0');
  }
  return bytes;
}

/// Where epochs and values lie in a chart.
struct Frame {
  Range epochs;
  Range values;

  static constexpr double kLeft = 52;
  static constexpr double kTop = 24;
  static constexpr double kWidth = 400;
  static constexpr double kHeight = 180;

  explicit Frame(std::span<const Curve> curves) {
    std::tie(epochs, values) = ranges_of(curves);
    for (Range* range : {&epochs, &values}) {
      if (range->high <= range->low) range->high = range->low + 1.0;
    }
  }
  double x(double epoch) const {
    return kLeft + kWidth * (epoch - epochs.low) / (epochs.high - epochs.low);
  }
  double y(double value) const {
    return kTop + kHeight * (values.high - value) / (values.high - values.low);
  }
};

std::string label(double x, double y, const char* anchor, const std::string& words) {
  return text("<text x=\"", fixed(x, 1), "\" y=\"", fixed(y, 1), "\" text-anchor=\"", anchor, "\">",
              escaped(words), "</text>");
}

std::string axes(const Frame& frame) {
  constexpr int kTicks = 4;
  const double range = frame.values.high - frame.values.low;
  // Three digits of the range that is shown.
  const double magnitude = std::floor(std::log10(range));
  const int digits = static_cast<int>(std::clamp(2.0 - magnitude, 0.0, 9.0));
  std::string svg;
  for (int i = 0; i <= kTicks; ++i) {
    const double value = frame.values.low + range * i / kTicks;
    const double y = frame.y(value);
    svg +=
        text("<line class=\"grid\" x1=\"", Frame::kLeft, "\" x2=\"", Frame::kLeft + Frame::kWidth,
             "\" y1=\"", fixed(y, 1), "\" y2=\"", fixed(y, 1), "\"/>");
    svg += label(Frame::kLeft - 6, y + 4, "end", fixed(value, digits));
  }
  const double bottom = Frame::kTop + Frame::kHeight + 16;
  svg += label(Frame::kLeft, bottom, "start", text(frame.epochs.low));
  return svg +
         label(Frame::kLeft + Frame::kWidth, bottom, "end", text("epoch ", frame.epochs.high));
}

/// Of the i-th of several.
std::string_view colour(std::size_t i) {
  static constexpr std::array<std::string_view, 8> kColours{
      "#1f6fb4", "#d9541e", "#2b8a3e", "#8e44ad", "#b8860b", "#0b8a8a", "#c2185b", "#555555"};
  return kColours[i % kColours.size()];
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : plain(text)) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

std::string picture_uri(std::span<const float> pixels, std::int64_t channels, std::int64_t height,
                        std::int64_t width, std::int64_t most) {
  const std::int64_t step = std::max<std::int64_t>(1, (std::max(height, width) + most - 1) / most);
  const std::int64_t small_height = (height + step - 1) / step;
  const std::int64_t small_width = (width + step - 1) / step;
  std::vector<unsigned char> bgr;
  for (std::int64_t y = 0; y < small_height; ++y) {
    for (std::int64_t x = 0; x < small_width; ++x) {
      for (std::int64_t c = 2; c >= 0; --c) {
        const std::int64_t channel = std::min(c, channels - 1);
        const float value = at(pixels, (channel * height + y * step) * width + x * step);
        const float shown = std::isfinite(value) ? std::clamp(value, 0.0F, 1.0F) : 0.0F;
        bgr.push_back(static_cast<unsigned char>(std::lround(shown * 255.0F)));
      }
    }
  }
  return "data:image/bmp;base64," + base64(bmp(static_cast<std::uint32_t>(small_width),
                                               static_cast<std::uint32_t>(small_height), bgr));
}

std::string svg_chart(const Chart& chart) {
  const std::vector<Curve>& curves = chart.curves;
  const Frame frame(curves);
  const double height =
      Frame::kTop + Frame::kHeight + 28 + 16.0 * static_cast<double>(curves.size());
  std::string svg = text("<svg class=\"chart\" viewBox=\"0 0 470 ", height, "\" role=\"img\">",
                         label(Frame::kLeft, 14, "start", chart.title), axes(frame));
  for (std::size_t i = 0; i < curves.size(); ++i) {
    std::string points;
    for (const auto& [x, y] : curves[i].points) {
      points += fixed(frame.x(x), 1) + ',' + fixed(frame.y(y), 1) + ' ';
      svg += text("<circle cx=\"", fixed(frame.x(x), 1), "\" cy=\"", fixed(frame.y(y), 1),
                  "\" r=\"2\" fill=\"", colour(i), "\"/>");
    }
    svg += text("<polyline points=\"", points, "\" fill=\"none\" stroke-width=\"2\" stroke=\"",
                colour(i), "\"/>");
    const double y = Frame::kTop + Frame::kHeight + 34 + 16.0 * static_cast<double>(i);
    svg +=
        text("<rect x=\"", Frame::kLeft, "\" y=\"", y - 9, "\" width=\"14\" height=\"10\" fill=\"",
             colour(i), "\"/>", label(Frame::kLeft + 20, y, "start", curves[i].name));
  }
  return svg + "</svg>";
}

}  // namespace graft::cli
