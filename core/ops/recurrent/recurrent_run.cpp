#include "core/ops/recurrent/recurrent_run.h"

#include "core/base/at.h"

namespace graft::recurrent {

Chains divide_samples(const RecurrentSizes& sizes, std::int64_t gate_columns) {
  constexpr std::int64_t kFewestSamples = 8;              // fewer leave vector units idle
  constexpr std::int64_t kLarge = std::int64_t{1} << 21;  // multiply-adds that occupy many threads
  const std::int64_t threads = thread_count();
  const std::int64_t most = std::max<std::int64_t>(1, sizes.batch / kFewestSamples);
  const std::int64_t count = std::clamp<std::int64_t>(threads / sizes.directions, 1, most);
  const std::int64_t all = count * sizes.directions;
  const bool is_small = static_cast<double>(sizes.batch) * static_cast<double>(gate_columns) *
                            static_cast<double>(sizes.hidden) <
                        static_cast<double>(kLarge);
  if (threads == 1 || all == 1 || (2 * all < threads && !is_small)) {
    return {{{0, sizes.batch}}, false};
  }
  Chains chains{{}, true};
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t first = sizes.batch * i / count;
    chains.of_direction.push_back({first, sizes.batch * (i + 1) / count - first});
  }
  return chains;
}

Kernel run_directions(std::vector<DirectionWork> directions, bool at_once) {
  std::vector<Kernel> chains;
  for (const DirectionWork& work : directions) {
    chains.insert(chains.end(), work.chains.begin(), work.chains.end());
  }
  const auto count = static_cast<std::int64_t>(chains.size());
  return [directions = std::move(directions), chains = std::move(chains), count,
          at_once](const KernelArgs& args) {
    for (const DirectionWork& work : directions) work.begin(args);
    parallel_for(count, at_once ? 1 : count, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) at(chains, i)(args);
    });
    for (const DirectionWork& work : directions) work.end(args);
  };
}

Kernel in_order(std::vector<Kernel> parts) {
  return [parts = std::move(parts)](const KernelArgs& args) {
    for (const Kernel& part : parts) part(args);
  };
}

}  // namespace graft::recurrent
