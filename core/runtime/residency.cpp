#include "core/runtime/residency.h"

#include <algorithm>
#include <functional>
#include <unordered_map>
#include <unordered_set>

#include "core/ops/alias.h"

namespace graft {
namespace {

bool is_plain(const Tensor& tensor) {
  return bits_of(tensor.dtype()) > 0;
}

std::unordered_set<const Value*> updated_by(const Graph& graph) {
  std::unordered_set<const Value*> updated;
  for (const auto& node : graph.nodes()) {
    for (int i = 0; i < node->output_count(); ++i) {
      if (const Alias* const alias = find_alias(*node, i, AliasKind::state)) {
        updated.insert(node->input(alias->input));
      }
    }
  }
  return updated;
}

}  // namespace

HostCopies::HostCopies(Graph& graph) {
  const auto is_elsewhere = [](const Tensor& tensor) {
    return tensor.defined() && &tensor.device() != &cpu();
  };
  for (Value* value : graph.initializers()) {
    if (is_elsewhere(value->initializer())) value->set_initializer(copy(value->initializer()));
  }
  for (const auto& node : graph.nodes()) {
    if (!node->is("Constant") || !node->attributes.has("value")) continue;
    const Tensor tensor = node->attributes.get_tensor("value");
    if (is_elsewhere(tensor)) node->attributes.set({"value", copy(tensor)});
  }
}

Tensor HostCopies::copy(const Tensor& tensor) {
  Tensor host = tensor.to(cpu());
  originals_[host.data()] = tensor;
  return host;
}

void HostCopies::give_back(Value& value) const {
  const auto at = originals_.find(value.initializer().data());
  if (at != originals_.end()) value.set_initializer(at->second);
}

void HostCopies::give_back_variables(Graph& graph) const {
  for (Value* value : graph.initializers()) {
    if (value->is_variable) give_back(*value);
  }
}

void HostCopies::give_back_all(Graph& graph) const {
  for (Value* value : graph.initializers()) give_back(*value);
}

void place_variables(Graph& graph, Device& device, Graph& sharer) {
  std::unordered_map<const void*, Tensor> placed;  // by the old elements
  for (Value* value : graph.initializers()) {
    const Tensor& tensor = value->initializer();
    if (!value->is_variable || &tensor.device() == &device || !is_plain(tensor)) continue;
    Tensor& copy = placed[tensor.data()];
    if (!copy.defined()) copy = tensor.to(device);
    value->set_initializer(copy.reshaped(tensor.shape()));
  }
  for (Value* value : sharer.initializers()) {
    const auto at = placed.find(value->initializer().data());
    if (at == placed.end() || !is_plain(value->initializer())) continue;
    value->set_initializer(at->second.reshaped(value->initializer().shape()));
  }
}

std::shared_ptr<const Tensor> SharedConstants::copy_on(Device& device, const Tensor& constant) {
  const std::scoped_lock lock(mutex_);
  const Key key{&device, constant.data(), constant.bytes()};
  std::shared_ptr<Entry> entry = entries_[key].lock();
  if (entry == nullptr) {
    std::erase_if(entries_, [](const auto& known) { return known.second.expired(); });
    entry = std::make_shared<Entry>(constant, constant.to(device));
    entries_[key] = entry;
  }
  return {entry, &entry->copy};
}

InitializerCopies::InitializerCopies(const Graph& graph, Device& device,
                                     SharedConstants& constants) {
  std::unordered_set<const Value*> updated;
  for (const Value* value : graph.initializers()) {
    const Tensor& tensor = value->initializer();
    if (&tensor.device() == &device || !is_plain(tensor)) continue;
    if (value->is_variable) {
      if (updated.empty()) updated = updated_by(graph);
      if (updated.contains(value)) {
        fail(ErrorKind::unsupported, "variable '", value->name(), "' lies on ",
             tensor.device().name(), ", but is updated on ", device.name(),
             "; train where it lies");
      }
    }
    copies_.push_back({value, value->is_variable ? std::make_shared<const Tensor>(tensor.to(device))
                                                 : constants.copy_on(device, tensor)});
  }
  std::ranges::sort(copies_, std::less<>(), &Copy::initializer);
}

void* InitializerCopies::address(const Value& initializer) const {
  const auto at =
      std::ranges::lower_bound(copies_, &initializer, std::less<>(), &Copy::initializer);
  const bool is_copied = at != copies_.end() && at->initializer == &initializer;
  return is_copied ? at->tensor->data() : initializer.initializer().data();
}

void InitializerCopies::refresh() const {
  for (const Copy& copy : copies_) {
    if (copy.initializer->is_variable) copy.tensor->copy_from(copy.initializer->initializer());
  }
}

}  // namespace graft
