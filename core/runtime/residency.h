#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "core/graph/graph.h"
#include "core/tensor/tensor.h"

namespace graft {

// Where the elements of initializers lie: what does not change, on the CPU, where folding and
// kernel factories look at it, and once more on each other device that has plans which read it.
// What changes between runs, on the device that changes it: the user's model shares that tensor, so
// there is no second copy that could be out of date.

/// Lets what looks at elements see a model that lies on another device: initializers and Constant
/// nodes of a working copy get copies on the CPU.
class HostCopies {
 public:
  explicit HostCopies(Graph& graph);

  bool empty() const { return originals_.empty(); }
  /// Variables of `graph`, which is that graph or a copy of it, get the originals back.
  void give_back_variables(Graph& graph) const;
  void give_back_all(Graph& graph) const;

 private:
  Tensor copy(const Tensor& tensor);
  void give_back(Value& value) const;

  std::unordered_map<const void*, Tensor> originals_;  // by the copy's elements
};

/// Brings the variables of `graph` to the device, and gives the new tensors to the initializers of
/// `sharer` that shared the old ones.
void place_variables(Graph& graph, Device& device, Graph& sharer);

/// Copies of constants on other devices, each made once for all plans that hold it. Threads may ask
/// at the same time.
class SharedConstants {
 public:
  /// The copy of `constant` on `device`, as it was when the first that still holds it asked.
  std::shared_ptr<const Tensor> copy_on(Device& device, const Tensor& constant);

 private:
  struct Entry {
    Tensor original;  // so that no other tensor gets its address
    Tensor copy;
  };
  using Key = std::tuple<const Device*, const void*, std::size_t>;  // and the bytes
  std::mutex mutex_;
  std::map<Key, std::weak_ptr<Entry>> entries_;
};

/// A plan's copies of initializers that lie on another device than the plan's.
class InitializerCopies {
 public:
  /// Throws Error{unsupported} if the graph updates a variable that lies elsewhere.
  InitializerCopies(const Graph& graph, Device& device, SharedConstants& constants);

  /// Where the plan finds the elements.
  void* address(const Value& initializer) const;
  /// Copies what may have changed. Before each run.
  void refresh() const;

 private:
  struct Copy {
    const Value* initializer;
    std::shared_ptr<const Tensor> tensor;
  };
  std::vector<Copy> copies_;  // by address of the value
};

}  // namespace graft
