#include "tools/graft/compare.h"

#include <algorithm>
#include <cmath>
#include <iomanip>
#include <sstream>
#include <vector>

#include "core/base/error.h"

namespace graft::cli {
namespace {

bool is_close(double found, double wanted, const Tolerance& tolerance) {
  if (std::isnan(wanted)) return std::isnan(found);
  if (std::isinf(wanted)) return found == wanted;
  return std::abs(found - wanted) <= tolerance.absolute + tolerance.relative * std::abs(wanted);
}

/// Nine digits tell any two floats apart.
std::string number(double value) {
  std::ostringstream out;
  out << std::setprecision(9) << value;
  return out.str();
}

std::string string_difference(std::string_view what, const Tensor& found, const Tensor& wanted) {
  for (std::size_t i = 0; i < wanted.strings().size(); ++i) {
    if (found.strings()[i] != wanted.strings()[i]) {
      return text(what, ": element ", i, " is '", found.strings()[i], "', wanted '",
                  wanted.strings()[i], "'");
    }
  }
  return {};
}

}  // namespace

std::string difference(std::string_view what, double found, double wanted,
                       const Tolerance& tolerance) {
  if (is_close(found, wanted, tolerance)) return {};
  return text(what, " is ", number(found), ", wanted ", number(wanted));
}

std::string difference(std::string_view what, const Tensor& found, const Tensor& wanted,
                       const Tolerance& tolerance) {
  if (found.dtype() != wanted.dtype() || found.shape() != wanted.shape()) {
    return text(what, " is ", found, ", wanted ", wanted);
  }
  if (wanted.dtype() == DType::string) return string_difference(what, found, wanted);
  if (!is_float(wanted.dtype())) {
    // As doubles, 64-bit integers could differ and look alike.
    return equal_bits(found, wanted) ? std::string() : text(what, ": the integers differ");
  }
  Tolerance allowed = tolerance;
  // Two units in the last place of bf16, as ONNX's own runner allows.
  if (wanted.dtype() == DType::bf16) allowed.relative = std::max(allowed.relative, 0x1p-6);
  const std::vector<double> ours = to_double(found);
  const std::vector<double> theirs = to_double(wanted);
  std::size_t bad = 0;
  std::size_t worst = 0;
  double worst_excess = -1.0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    if (is_close(ours[i], theirs[i], allowed)) continue;
    ++bad;
    const double excess =
        std::abs(ours[i] - theirs[i]) / (allowed.absolute + allowed.relative * std::abs(theirs[i]));
    if (excess > worst_excess || bad == 1) {
      worst = i;
      worst_excess = excess;
    }
  }
  if (bad == 0) return {};
  return text(what, ": ", bad, " of ", ours.size(), " elements differ; element ", worst, " is ",
              number(ours[worst]), ", wanted ", number(theirs[worst]));
}

std::string difference(std::string_view what, const Datum& found, const Datum& wanted,
                       const Tolerance& tolerance) {
  if (found.is_tensor() && wanted.is_tensor()) {
    return difference(what, found.tensor(), wanted.tensor(), tolerance);
  }
  if (found.is_dictionary() && wanted.is_dictionary()) {
    const std::string name(what);
    const std::string keys =
        difference(name + " (keys)", found.dictionary().keys, wanted.dictionary().keys, tolerance);
    return keys.empty() ? difference(name + " (values)", found.dictionary().values,
                                     wanted.dictionary().values, tolerance)
                        : keys;
  }
  if (!found.is_sequence() || !wanted.is_sequence()) {
    if (found.is_nothing() && wanted.is_nothing()) return {};
    return text(what, " is ", describe(found), ", wanted ", describe(wanted));
  }
  const std::vector<Datum>& ours = found.sequence().items;
  const std::vector<Datum>& theirs = wanted.sequence().items;
  if (ours.size() != theirs.size()) {
    return text(what, " has ", ours.size(), " items, wanted ", theirs.size());
  }
  for (std::size_t i = 0; i < ours.size(); ++i) {
    std::string different = difference(text(what, " item ", i), ours[i], theirs[i], tolerance);
    if (!different.empty()) return different;
  }
  return {};
}

}  // namespace graft::cli
