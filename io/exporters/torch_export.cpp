// What PyTorch's exporter writes beside the nodes and values of a graph.
#include <algorithm>
#include <cctype>
#include <numeric>
#include <set>
#include <span>
#include <unordered_map>

#include "io/exporters/exporters.h"
#include "io/onnx.h"
#include "io/proto/metadata.h"

namespace graft::onnx {
namespace {

using Names = std::set<std::string>;

/// The parameters and buffers, "p_encoder_norm_weight" and "b_norm_running_mean", in a printed call
/// like "%y : [num_users=1] = call_function[target=aten.linear](args = (%x, %p_fc_weight), ...)".
Names parameters_in(std::string_view call) {
  constexpr std::string_view kOfNames =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
  Names names;
  for (std::size_t at = call.find('%'); at != call.npos; at = call.find('%', at)) {
    const std::size_t end = std::min(call.find_first_not_of(kOfNames, ++at), call.size());
    const std::string_view name = call.substr(at, end - at);
    if (name.starts_with("p_") || name.starts_with("b_")) names.emplace(name);
    at = end;
  }
  return names;
}

/// Those of the call that the exporter made the node of; none where it does not say.
Names parameters_of(const Node& node) {
  return parameters_in(metadata_of(node, "pkg.torch.onnx.fx_node"));
}

/// "p_encoder_norm_weight" for "encoder.norm.weight"; parts of names may lose their case.
std::string in_calls(const std::string& name) {
  std::string result = "p_" + name;
  for (char& c : result) {
    c = c == '.' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return result;
}

/// Readers of one parameter, and the parameters that stand beside it in their calls.
struct Readers {
  Names names;
  std::vector<Use> uses;
};

/// Which of many belong together: each leads to another of its set, the last to itself.
class Sets {
 public:
  explicit Sets(std::size_t count) : next_(count) { std::iota(next_.begin(), next_.end(), 0); }

  std::size_t find(std::size_t i) {
    while (next_[i] != i) i = next_[i] = next_[next_[i]];
    return i;
  }
  void join(std::size_t a, std::size_t b) { next_[find(a)] = find(b); }

 private:
  std::vector<std::size_t> next_;
};

/// The uses of a value that say something, grouped by parameter: those whose calls have a name in
/// common. In the order of the last use of each.
std::vector<Readers> group(std::span<const Use> uses,
                           std::unordered_map<const Node*, Names>& names_of) {
  Sets sets(uses.size());
  std::unordered_map<std::string_view, std::size_t> first_with;
  for (std::size_t i = 0; i < uses.size(); ++i) {
    const auto [found, is_new] = names_of.try_emplace(uses[i].node);
    if (is_new) found->second = parameters_of(*uses[i].node);
    for (const std::string& name : found->second) {
      sets.join(first_with.try_emplace(name, i).first->second, i);
    }
  }
  std::vector<Readers> groups;
  std::unordered_map<std::size_t, std::size_t> group_of;
  for (std::size_t i = uses.size(); i-- > 0;) {
    const Names& names = names_of.at(uses[i].node);
    if (names.empty()) continue;
    const auto [at, is_new] = group_of.try_emplace(sets.find(i), groups.size());
    if (is_new) groups.emplace_back();
    groups[at->second].names.insert(names.begin(), names.end());
    groups[at->second].uses.push_back(uses[i]);
  }
  std::ranges::reverse(groups);
  return groups;
}

/// The one name that ends as the value's does ("weight"), without its "p_"; else the value's.
std::string name_for(const Readers& readers, const Value& value) {
  const std::string own = in_calls(value.name());
  const std::string ending = own.substr(own.rfind('_'));
  std::string found;
  for (const std::string& name : readers.names) {
    if (!name.ends_with(ending)) continue;
    if (!found.empty()) return value.name();
    found = name.substr(2);
  }
  return found.empty() ? value.name() : found;
}

/// "val_7", and "val_7_1" where separate_merged() made a copy.
bool is_numbered(std::string_view name) {
  constexpr std::string_view kStem = "val_";
  return name.starts_with(kStem) && name.size() > kStem.size() &&
         name.find_first_not_of("0123456789_", kStem.size()) == name.npos;
}

}  // namespace

Role torch_export_role(const Value& value) {
  const std::string kind =
      value.is_initializer() ? metadata_of(value, "pkg.torch.export.graph_signature.InputSpec.kind")
                             : "";
  if (kind == "PARAMETER") return Role::parameter;
  if (kind == "BUFFER") return Role::buffer;
  return is_numbered(value.name()) ? Role::folded : Role::unknown;
}

std::size_t separate_merged(Graph& graph) {
  std::size_t count = 0;
  std::unordered_map<const Node*, Names> names_of;
  const std::vector<Value*> initializers = graph.initializers();
  for (Value* const value : initializers) {
    if (!is_float(value->dtype()) || value->is_graph_input() || value->uses().size() < 2) continue;
    std::vector<Readers> groups = group(value->uses(), names_of);
    if (groups.size() < 2) continue;
    const auto owner = std::ranges::find_if(groups, [&](const Readers& readers) {
      return readers.names.contains(in_calls(value->name()));
    });
    std::swap(groups.front(), owner == groups.end() ? groups.front() : *owner);
    for (const Readers& readers : std::span(groups).subspan(1)) {
      Value* const own = graph.add_initializer(graph.unique_name(name_for(readers, *value)),
                                               value->initializer().clone());
      const PreservedValue& kept = graph.preserved_of(value);
      PreservedValue& copy = graph.preserve(own);
      copy.info = kept.info;  // what kind it is, in files written too
      copy.in_value_info = kept.in_value_info;
      const bool is_frozen = value->role == Role::buffer || value->role == Role::constant;
      own->role = is_frozen ? value->role : role_of(*own);
      for (const Use& use : readers.uses) use.node->set_input(use.index, own);
      ++count;
    }
  }
  return count;
}

}  // namespace graft::onnx
