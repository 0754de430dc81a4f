#pragma once

#include <graft/model.h>

#include <cstdint>
#include <mutex>
#include <utility>

namespace graft::python {

/// A model that Python holds. Whoever works on it outside the interpreter's lock holds `mutex`,
/// which is taken without that lock only: whoever waits for the one must not hold the other.
struct HeldModel {
  explicit HeldModel(Model held) : model(std::move(held)) {}

  Model model;
  std::mutex mutex;
  /// How often the graph was changed: what was made from it before refuses to go on.
  std::uint64_t edits = 0;
};

}  // namespace graft::python
