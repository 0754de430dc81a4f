// What each exporter tells, put together.
#include <map>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "core/graph/frozen.h"
#include "core/graph/reads.h"
#include "io/exporters/exporters.h"

namespace graft::onnx {
namespace {

std::string_view last_part(std::string_view name) {
  return name.substr(name.rfind('.') + 1);  // all of it where there is no dot
}

/// PyTorch's names, which the exporters of other frameworks use too.
bool is_name_of_statistic(std::string_view name) {
  const std::string_view last = last_part(name);
  return last == "running_mean" || last == "running_var";
}

/// The values of a model that a BatchNormalization reads, directly, through ops that only rearrange
/// them, or within a function of the model.
class ReadByBatchNorm {
 public:
  explicit ReadByBatchNorm(const Model& model) {
    for (const Function& f : model.functions)
      bodies_.emplace(std::pair<std::string_view, std::string_view>(f.domain, f.name),
                      f.body.get());
    collect(model.graph());
  }
  bool contains(const Value& value) const { return found_.contains(&value); }

 private:
  /// From the last node to the first, so that what a node hands on is known before it.
  void collect(const Graph& graph) {
    const auto& nodes = graph.nodes();
    for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
      for_each_body(**node, [this](const Graph& body) { collect(body); });
      for (int i = 0; i < (*node)->input_count(); ++i) {
        if ((*node)->input(i) != nullptr && is_read({node->get(), i})) {
          found_.insert((*node)->input(i));
        }
      }
    }
  }

  bool is_read(const Use& use) {
    const Node& node = *use.node;
    if (node.is("BatchNormalization")) return true;
    if (only_rearranges(use)) {
      for (int i = 0; i < node.output_count(); ++i) {
        if (found_.contains(node.output(i))) return true;
      }
      return false;
    }
    const auto called = bodies_.find({node.domain(), node.op_type()});
    if (called == bodies_.end()) return false;
    const Graph& body = *called->second;
    if (seen_.insert(&body).second) collect(body);
    const auto& inputs = body.inputs();
    const auto index = static_cast<std::size_t>(use.index);
    return index < inputs.size() && contains(*inputs[index]);
  }

  std::map<std::pair<std::string_view, std::string_view>, const Graph*> bodies_;
  std::unordered_set<const Graph*> seen_;
  std::unordered_set<const Value*> found_;
};

/// The scale or the bias beside statistics that no BatchNormalization reads: of a norm that is
/// written out because it is frozen.
bool is_of_frozen_norm(const Value& value, const Graph& graph, const ReadByBatchNorm& read) {
  const std::string_view last = last_part(value.name());
  if (last != "weight" && last != "bias") return false;
  const std::string prefix = value.name().substr(0, value.name().size() - last.size());
  const Value* const variance = graph.find(prefix + "running_var");
  return variance != nullptr && !read.contains(*variance);
}

}  // namespace

Role role_of(const Value& value) {
  const bool is_constant_node = value.producer() != nullptr && value.producer()->is("Constant");
  const Role script = torch_script_role(value);
  const Role said = torch_export_role(value);
  if (said == Role::parameter || said == Role::buffer) return said;
  if (script != Role::unknown) return script;
  if (is_name_of_statistic(value.name())) return Role::statistic;
  return is_constant_node ? Role::folded : said;
}

void give_roles(Model& model) {
  const ReadByBatchNorm read(model);
  const auto give = [&](Value& value) {
    value.role = role_of(value);
    const bool is_open = value.role == Role::unknown || value.role == Role::folded;
    if (is_open && is_of_frozen_norm(value, model.graph(), read)) value.role = Role::buffer;
  };
  for (Value* value : model.graph().initializers()) give(*value);
  for (const auto& node : model.graph().nodes()) {
    for (int i = 0; i < node->output_count(); ++i) {
      if (node->output(i) != nullptr) give(*node->output(i));
    }
  }
  edit::give_frozen_roles(model);
}

}  // namespace graft::onnx
