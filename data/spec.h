#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "data/dataset.h"

namespace graft {

/// One form of a data spec: `NAME:PLACE`.
struct DataSource {
  std::string_view name;
  /// "DIR" or "FILE", as messages show it.
  std::string_view place;
  /// Whether `NAME` alone will do; `open` then gets an empty place.
  bool place_is_optional = false;
  std::shared_ptr<Dataset> (*open)(const std::string& place, Split split) = nullptr;
};

/// Opens `fashion-mnist[:DIR]`, `mnist:DIR`, `cifar10:DIR` or `csv:FILE` (the same file for both
/// splits), or a form that the caller adds with `more`. Throws Error{argument} for another form,
/// with the list of those there are, and what the source throws.
std::shared_ptr<Dataset> open_dataset(std::string_view spec, Split split,
                                      std::span<const DataSource> more = {});

}  // namespace graft
