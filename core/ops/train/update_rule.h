#pragma once

#include <cstdint>
#include <functional>

#include "core/ops/kernel.h"

namespace graft {

/// Some elements of a parameter and its state, from `first` to `last`, with their gradient.
struct UpdatePart {
  /// Of the update, or of its product form: what both read stands at the same places.
  const KernelArgs& args;
  const void* gradient_data;  ///< of these elements alone
  std::int64_t first;
  std::int64_t last;

  std::int64_t size() const { return last - first; }
  template <class G>
  const G* gradient() const {
    return static_cast<const G*>(gradient_data);
  }
  /// The parameter (0) or a state. Must not be left out.
  template <class T>
  const T* old_elements(int input) const {
    return args.input<T>(input) + first;
  }
  template <class T>
  T* new_elements(int output) const {
    return args.output<T>(output) + first;
  }
};

/// What an update does, on the calling thread.
using UpdateRule = std::function<void(const UpdatePart& part)>;

/// The same for states some of which are stored in bf16: a piece of them at a time is widened to T,
/// in the nearest cache, and its new content rounded stochastically, by the step, the place of the
/// element and which state it is. `rule` itself where none is.
template <class T>
UpdateRule with_stored_states(const KernelRequest& request, UpdateRule rule);

/// The rule of the update, or of the update whose product form this is; input 1 has the element
/// type of the gradient. Empty for element types that it does not take.
UpdateRule update_rule(const KernelRequest& request);

}  // namespace graft
