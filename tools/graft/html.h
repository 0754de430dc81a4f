#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/graft/run_record.h"

// Pieces of a page that needs nothing beside itself: no script, no file, no network.
namespace graft::cli {

/// Text as HTML shows it, whatever it holds.
std::string escaped(std::string_view text);

/// A picture with values from 0 to 1, [channels,height,width] with 1 or 3 channels, as a data URI.
/// Larger ones are made smaller, to at most `most` pixels a side.
std::string picture_uri(std::span<const float> pixels, std::int64_t channels, std::int64_t height,
                        std::int64_t width, std::int64_t most = 48);

/// Its curves over epochs with title, axes and a legend.
std::string svg_chart(const Chart& chart);

}  // namespace graft::cli
