#include <algorithm>
#include <array>
#include <cassert>

#include "core/ops/kernels/convert_floats.h"
#include "core/ops/kernels/prefetch.h"
#include "core/ops/kernels/stochastic_rounding.h"
#include "core/ops/registry.h"
#include "core/ops/train/update_rule.h"

namespace graft {
namespace {

template <class T>
void widen(const BFloat16* x, std::int64_t count, T* y) {
  if constexpr (std::is_same_v<T, float>) {
    convert_floats(x, count, y);
  } else {
    std::transform(x, x + count, y, [](BFloat16 v) { return convert<T>(v); });
  }
}

template <class T>
class StoredStates {
 public:
  StoredStates(const KernelRequest& request, UpdateRule rule)
      : rule_(std::move(rule)), gradient_(request.dtype(1)) {
    for (const Alias& alias : OpRegistry::instance().get(request.node()).aliases) {
      if (!request.has_input(alias.input) || !request.has_output(alias.output)) continue;
      const bool is_stored = request.dtype(alias.input) != request.dtype();
      (is_stored ? stored_ : given_).push_back(alias);
    }
    assert(static_cast<std::size_t>(request.input_count()) <= kMostInputs);
    assert(static_cast<std::size_t>(request.output_count()) <= kMostOutputs);
    assert(stored_.size() <= kMostStates);
  }

  bool has_any() const { return !stored_.empty(); }

  void operator()(const UpdatePart& part) const {
    const auto step = static_cast<std::uint64_t>(*part.args.input<std::int64_t>(kStep));
    for (std::int64_t first = part.first; first < part.last; first += kPiece) {
      const auto* const gradient = part.gradient<std::byte>();
      run({part.args, gradient + bytes_of(gradient_, first - part.first), first,
           std::min(first + kPiece, part.last)},
          step);
    }
  }

 private:
  /// All that an update reads and writes of so many elements fits a first cache, and what rules
  /// compute once a call does not matter.
  static constexpr std::int64_t kPiece = 512;
  static constexpr int kStep = 3;
  static constexpr std::size_t kMostInputs = 8;
  static constexpr std::size_t kMostOutputs = 4;
  static constexpr std::size_t kMostStates = kMostOutputs - 1;

  /// The rule sees the piece as if it were a whole parameter.
  void run(const UpdatePart& piece, std::uint64_t step) const {
    alignas(64) std::array<std::array<T, kPiece>, kMostStates> wide;
    std::array<const void*, kMostInputs> inputs{};
    std::array<void*, kMostOutputs> outputs{};
    std::ranges::copy(piece.args.inputs, inputs.begin());
    std::ranges::copy(piece.args.outputs, outputs.begin());
    for (const auto& [output, input, kind] : given_) {
      const T* const from = piece.old_elements<T>(input);
      fetch_next(from);
      inputs[at(input)] = from;
      outputs[at(output)] = piece.new_elements<T>(output);
    }
    for (std::size_t i = 0; i < stored_.size(); ++i) {
      const auto* const from = piece.old_elements<BFloat16>(stored_[i].input);
      fetch_next(from);
      widen(from, piece.size(), wide[i].data());
      inputs[at(stored_[i].input)] = outputs[at(stored_[i].output)] = wide[i].data();
    }
    const KernelArgs args{{inputs.data(), piece.args.inputs.size()},
                          {outputs.data(), piece.args.outputs.size()},
                          piece.args.workspace,
                          piece.args.run};
    rule_({args, piece.gradient_data, 0, piece.size()});
    for (std::size_t i = 0; i < stored_.size(); ++i) {
      const auto which = static_cast<std::uint64_t>(stored_[i].output);
      const StochasticRounding round(Philox(step, which));
      round(wide[i].data(), piece.first, piece.size(),
            piece.new_elements<BFloat16>(stored_[i].output));
    }
  }

  /// Has the next piece brought from memory while this one is computed, for that is no one stream
  /// that the processor would follow by itself.
  template <class E>
  static void fetch_next(const E* piece) {
    prefetch_run(piece + kPiece, kPiece);
  }

  static std::size_t at(int index) { return static_cast<std::size_t>(index); }

  UpdateRule rule_;
  DType gradient_;
  std::vector<Alias> stored_;  ///< states in bf16
  std::vector<Alias> given_;   ///< the parameter, and states of its type
};

}  // namespace

template <class T>
UpdateRule with_stored_states(const KernelRequest& request, UpdateRule rule) {
  StoredStates<T> states(request, rule);
  if (!states.has_any()) return rule;
  return states;
}

template UpdateRule with_stored_states<float>(const KernelRequest& request, UpdateRule rule);
template UpdateRule with_stored_states<double>(const KernelRequest& request, UpdateRule rule);

}  // namespace graft
