#pragma once

#include <graft/edit.h>
#include <graft/model.h>

#include <cstdint>
#include <mutex>
#include <type_traits>
#include <utility>

#include "python/bindings/bindings.h"

namespace graft::python {

/// A model that Python holds.
class HeldModel {
 public:
  explicit HeldModel(Model model) : model_(std::move(model)) {}

  /// Calls `work` with the model outside the interpreter's lock, alone with it: whoever waits for
  /// the model must not hold the lock. `work` may call it again, as a loss of Python's that looks
  /// at the model does.
  template <class Work>
  auto alone(Work&& work) {
    const nb::gil_scoped_release unlocked;
    const std::lock_guard lock(mutex_);
    return work(model_);
  }

  /// How often the graph was changed: what was made from it before refuses to go on. Read and
  /// counted up within alone().
  std::uint64_t edits = 0;

 private:
  Model model_;
  std::recursive_mutex mutex_;
};

/// Edits the model and returns what the edit does. Every edit leaves the types of the outputs
/// known, where inference finds them: a file wants them.
template <class Edit>
auto change(HeldModel& held, Edit&& edit_model) {
  return held.alone([&](Model& model) {
    const auto finish = [&] {
      ++held.edits;
      edit::complete_output_types(model);
    };
    if constexpr (std::is_void_v<decltype(edit_model(model))>) {
      edit_model(model);  // one that throws leaves the model as it was
      finish();
    } else {
      auto result = edit_model(model);
      finish();
      return result;
    }
  });
}

/// Adds adapters, repairs and what is frozen to the class.
void bind_adapting(nb::class_<HeldModel>& model);

}  // namespace graft::python
