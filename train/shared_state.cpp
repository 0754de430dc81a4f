#include "train/shared_state.h"

#include <algorithm>
#include <sstream>

#include "optim/state_names.h"
#include "train/averages.h"
#include "train/data_parallel.h"
#include "train/step_builder.h"

namespace graft {
namespace {

struct Kept {
  std::string parameter;
  int rank;
};

/// Whose state that name is; nothing for what each rank keeps: gradients that wait, and what
/// follows running statistics. Of "w" and "w.mean" it is the longer.
std::optional<Kept> keeper_of(const Owners& owners, const std::string& name) {
  for (std::size_t end = name.rfind('.'); end != name.npos && end > 0;
       end = name.rfind('.', end - 1)) {
    const auto owner = owners.find(name.substr(0, end));
    if (owner == owners.end()) continue;
    const bool waits = is_name_from(kAccumulated, std::string_view(name).substr(end + 1));
    return waits ? std::nullopt : std::optional(Kept{owner->first, owner->second});
  }
  return std::nullopt;
}

/// Type, length and text of each name.
std::string listed(const StateTensors& state, const Owners& owners, int rank) {
  std::ostringstream list;
  for (const auto& [name, tensor] : state) {
    const std::optional<Kept> keeper = keeper_of(owners, name);
    if (!keeper || keeper->rank != rank) continue;
    list << static_cast<int>(tensor.dtype()) << ' ' << name.size() << ' ' << name;
  }
  return list.str();
}

std::string broadcast(std::string bytes, int root, Communicator& ranks) {
  std::uint64_t size = bytes.size();
  ranks.broadcast(std::as_writable_bytes(std::span(&size, 1)), root);
  bytes.resize(size);
  ranks.broadcast(std::as_writable_bytes(std::span(bytes)), root);
  return bytes;
}

/// What one rank keeps, on rank 0. State has the shape of its parameter (train/check_state.h).
void gather_from(int root, const StepTensors& step, Communicator& ranks, StateTensors& all) {
  const Owners& owners = step.trained.owners;
  std::istringstream list(broadcast(listed(step.state, owners, ranks.rank()), root, ranks));
  int type = 0;
  std::size_t size = 0;
  while (list >> type >> size) {
    std::string name(size, '\0');
    list.get();
    list.read(name.data(), static_cast<std::streamsize>(size));
    const Tensor& parameter = step.graph.find(keeper_of(owners, name)->parameter)->initializer();
    const Tensor tensor = root == ranks.rank()
                              ? step.state.at(name)
                              : Tensor::empty(static_cast<DType>(type), parameter.shape());
    graft::broadcast(tensor, root, ranks);
    if (ranks.rank() == 0) all.emplace(name, tensor);
  }
}

std::vector<Tensor> unequal(const StepTensors& step) {
  return step.options.sync_every > 1 ? changed_on_rank(step.graph, step.trained, step.state)
                                     : own_of_rank(step.graph, step.state);
}

/// All ranks get each parameter, and what is tied to it, from its owner.
void share_updates(const StepTensors& step, Communicator& ranks) {
  for (const auto& [name, owner] : step.trained.owners) {
    broadcast(step.graph.find(name)->initializer(), owner, ranks);
  }
  for (const Tie& tie : step.trained.ties) {
    const auto owner = step.trained.owners.find(tie.leader);
    if (owner != step.trained.owners.end()) broadcast(tie.follower_content, owner->second, ranks);
  }
}

}  // namespace

Owners choose_owners(const Graph& graph, const std::vector<std::string>& parameters,
                     const TrainOptions& options) {
  const int ranks = or_alone(options.communicator).size();
  if (ranks == 1 || !options.shard_state) return {};
  std::vector<const Value*> values;
  for (const std::string& name : parameters) values.push_back(graph.find(name));
  std::ranges::stable_sort(values, std::greater(), &Value::bytes);
  std::vector<std::size_t> bytes(static_cast<std::size_t>(ranks));
  Owners owners;
  for (const Value* value : values) {
    const auto least = std::ranges::min_element(bytes);
    owners.emplace(value->name(), static_cast<int>(least - bytes.begin()));
    *least += value->bytes();
  }
  return owners;
}

void keep_share(const Owners& owners, int rank, StateTensors& state) {
  std::erase_if(state, [&](const auto& kept) {
    const std::optional<Kept> keeper = keeper_of(owners, kept.first);
    return keeper && keeper->rank != rank;
  });
}

void meet_after_update(const StepTensors& step, std::int64_t updates) {
  const TrainOptions& options = step.options;
  Communicator& ranks = or_alone(options.communicator);
  if (ranks.size() == 1) return;
  if (!step.trained.owners.empty()) share_updates(step, ranks);
  if (options.sync_every > 1) {
    if (updates % options.sync_every == 0) average(unequal(step), ranks);
  } else if (options.sync_bn) {
    average(statistics_of(step.graph, step.state), ranks);
  }
}

void meet(const StepTensors& step) {
  Communicator& ranks = or_alone(step.options.communicator);
  if (ranks.size() > 1) average(unequal(step), ranks);
}

Gathered gather(const StepTensors& step) {
  Communicator& ranks = or_alone(step.options.communicator);
  Gathered gathered;
  if (ranks.size() == 1) return gathered;
  const std::vector<Tensor> own = unequal(step);
  std::vector<Tensor> means;
  for (const Tensor& tensor : own) means.push_back(tensor.clone());
  average(means, ranks);
  for (std::size_t i = 0; i < own.size() && ranks.rank() == 0; ++i) {
    gathered.means.emplace(own[i].data(), means[i]);
  }
  for (int root = 1; root < ranks.size() && !step.trained.owners.empty(); ++root) {
    gather_from(root, step, ranks, gathered.state);
  }
  return gathered;
}

void complete(TrainState& state, const std::optional<Gathered>& gathered, const StepTensors& step) {
  const int rank = or_alone(step.options.communicator).rank();
  if (!step.trained.owners.empty() && (!gathered || rank > 0)) {
    fail(ErrorKind::argument, "rank ", rank,
         " keeps the optimizer's state of some parameters only (shard_state): rank 0 has all "
         "behind gather_state(), which all ranks call, until the next step");
  }
  if (!gathered) return;
  for (auto* const tensors : {&state.weights, &state.optimizer}) {
    for (auto& [name, tensor] : *tensors) {
      const auto mean = gathered->means.find(tensor.data());
      if (mean != gathered->means.end() && tensor.size() > 0) tensor = mean->second;
    }
  }
  state.optimizer.insert(gathered->state.begin(), gathered->state.end());
}

}  // namespace graft
