#pragma once

#include <string>
#include <string_view>

#include "core/tensor/datum.h"

namespace graft::cli {

/// |found - wanted| <= absolute + relative * |wanted|, NaN equals NaN.
struct Tolerance {
  double relative = 1e-3;
  double absolute = 1e-7;
};

/// What differs, as "y: element 3 is 1.5, wanted 1.4"; empty when nothing does. Element types and
/// shapes must be equal; integers, bools and strings equal exactly.
std::string difference(std::string_view what, const Tensor& found, const Tensor& wanted,
                       const Tolerance& tolerance);
/// Sequences item by item, maps key by key.
std::string difference(std::string_view what, const Datum& found, const Datum& wanted,
                       const Tolerance& tolerance);
std::string difference(std::string_view what, double found, double wanted,
                       const Tolerance& tolerance);

}  // namespace graft::cli
