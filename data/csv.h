#pragma once

#include <filesystem>
#include <memory>

#include "data/dataset.h"

namespace graft {

/// What the last column of a csv file means.
enum class CsvTarget {
  automatic,    ///< a class index when every value is spelled as digits only ("3"), else a number
  class_index,  ///< i64[]: 0, 1, ...
  number,       ///< f32[1]
};

/// Numbers separated by commas, one sample a line, the target in the last column; plain or gzip.
/// The first line is a header when one of its fields is neither empty nor a number. Fields may
/// stand in double quotes; blank lines are skipped. To make whole numbers a float target under
/// `automatic`, write one of them with a point ("3.0").
/// Input "features" f32[columns - 1], target "label" (class index) or "target" (number).
/// Throws Error{io} with line and column if a field is not a finite f32, if lines differ in length,
/// or if there is no sample.
std::shared_ptr<Dataset> csv(const std::filesystem::path& path,
                             CsvTarget target = CsvTarget::automatic);

}  // namespace graft
