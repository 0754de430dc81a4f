#include <set>
#include <unordered_set>

#include "core/base/limits.h"
#include "core/ops/builder.h"
#include "core/ops/chosen.h"
#include "core/ops/registry.h"
#include "core/passes/chosen_internal.h"
#include "core/passes/flex_attention_internal.h"
#include "core/passes/functions_internal.h"
#include "core/passes/legacy_internal.h"
#include "core/passes/microsoft.h"
#include "core/passes/pass.h"
#include "core/passes/pass_watch.h"
#include "core/passes/splice_internal.h"

namespace graft::passes {
namespace {

/// By the nodes of the graph, its bodies and the functions, as the file has them.
std::int64_t most_inlined_nodes(const Model& model) {
  std::uint64_t own = count_nodes(model.graph());
  for (const Function& function : model.functions) own += count_nodes(*function.body);
  return grown(limits().inlined_nodes, limits().inlined_share, own);
}

// Ops that are written in others wherever they stand. A build for models without them does without
// what writes them.
constexpr std::string_view kMicrosoft = "expand_microsoft";
constexpr std::string_view kFlexAttention = "inline_flex_attention";
constexpr bool kHasMicrosoft = is_chosen(kMicrosoft);
constexpr bool kHasFlexAttention = is_chosen(kFlexAttention);

/// Lists ops that have neither a row nor a body, those of called functions too.
class UnknownOps {
 public:
  explicit UnknownOps(const Functions& functions) : functions_(functions) {}

  void collect(const Graph& graph) {
    for (const auto& node : graph.nodes()) {
      for_each_body(*node, [&](const Graph& body) { collect(body); });
      if (OpRegistry::instance().find(*node) != nullptr ||
          (kHasFlexAttention && is_flex_attention(*node)) ||
          (kHasMicrosoft && is_microsoft(*node))) {
        continue;
      }
      if (const Function* const function = functions_.find(*node)) {
        if (seen_.insert(function).second) collect(*function->body);
        continue;
      }
      names_.insert((node->domain().empty() ? "" : node->domain() + ".") + node->op_type() + " (" +
                    node->label() + ")");
    }
  }

  void refuse_any() const {
    if (names_.empty()) return;
    std::string list;
    for (const std::string& op : names_) list += (list.empty() ? "" : ", ") + op;
    fail(ErrorKind::unsupported, "ops ", missing_op(), ": ", list);
  }

 private:
  const Functions& functions_;
  std::unordered_set<const Function*> seen_;
  std::set<std::string> names_;
};

bool is_unread(const Node& node) {
  for (int i = 0; i < node.output_count(); ++i) {
    if (node.output(i) != nullptr && !node.output(i)->is_unused()) return false;
  }
  return true;
}

bool lacks_shape(const Node& node) {
  for (int i = 0; i < node.output_count(); ++i) {
    if (node.output(i) != nullptr && !node.output(i)->shape()) return true;
  }
  return false;
}

class Upgrader {
 public:
  /// `most_nodes`: functions that call functions twice double with each level.
  Upgrader(const Functions& functions, std::int64_t most_nodes)
      : functions_(functions), most_nodes_(most_nodes) {}

  bool run(Graph& graph, std::int64_t from) {
    bool changed = false;
    for (auto next = graph.nodes().begin(); next != graph.nodes().end();) {
      Node* const node = (next++)->get();  // which may go
      for_each_body(*node, [&](Graph& body) { changed |= run(body, from); });
      const OpDef* const def = OpRegistry::instance().find(*node);
      if (kHasFlexAttention && is_flex_attention(*node)) {
        inline_flex_attention(*node);
        PassWatch::note_change(kFlexAttention);
        changed = true;
      } else if (def == nullptr && functions_.find(*node) == nullptr) {
        changed = true;  // of com.microsoft: when all others are in their newest form
      } else if (def == nullptr) {
        inline_call(*node, from);
        changed = true;
      } else if (def->upgrade != nullptr || from < kOldestOpset) {
        upgrade(*node, *def, from);
        changed = true;
      }
    }
    return changed;
  }

 private:
  static void upgrade(Node& node, const OpDef& def, std::int64_t from) {
    Builder builder(node.graph(), &node);
    const bool was_unread = is_unread(node);
    const bool is_legacy = from != 0 && from < kOldestOpset;
    if (is_legacy) upgrade_legacy(node, from, builder);
    if (def.upgrade != nullptr) def.upgrade(node, from, builder);
    if (!was_unread && is_unread(node)) return node.graph().remove(&node);
    // The next legacy node may need the rank, which files of the time do not state.
    if (is_legacy && lacks_shape(node)) infer(node);
  }

  /// The body comes in its newest form: it may be written in another opset than the caller.
  void inline_call(Node& call, std::int64_t from) {
    const Function& function = *functions_.find(call);
    if (++depth_ > limits().call_depth) {  // as those do that call themselves
      fail(ErrorKind::model, call.label(), ": functions call each other deeper than this; ",
           limit_text("calls", limits().call_depth));
    }
    const std::unique_ptr<Graph> body = body_for_call(function, call);
    const std::int64_t own = opset_of(function);
    run(*body, own != 0 ? own : from);
    inlined_ += static_cast<std::int64_t>(body->node_count());
    if (inlined_ > most_nodes_) {
      fail(ErrorKind::unsupported, call.label(), ": its functions become ", inlined_,
           " nodes or more; ", limit_text("nodes", most_nodes_));
    }
    const std::string prefix = (call.name().empty() ? function.name : call.name()) + "/";
    replace_node(call, splice(*body, call.graph(), &call, call.copy_inputs(), prefix));
    --depth_;
  }

  const Functions& functions_;
  const std::int64_t most_nodes_;
  std::int64_t depth_ = 0;
  std::int64_t inlined_ = 0;
};

/// Frees the name; whoever has it computes something else now.
void free_name(Graph& graph, const std::string& name) {
  if (Value* const holder = graph.find(name)) {
    graph.rename(holder, graph.unique_name(name + "_replaced"));
  }
}

/// Programs ask for outputs by name, whatever computes them now.
void keep_output_names(Graph& graph, const std::vector<std::string>& names) {
  const std::vector<Value*> found = graph.outputs();
  const std::unordered_set<std::string> wanted(names.begin(), names.end());
  std::vector<Value*> outputs = found;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i]->name() == names[i]) continue;
    free_name(graph, names[i]);
    const bool is_free = outputs[i]->producer() != nullptr && !wanted.contains(outputs[i]->name());
    if (!is_free) {
      outputs[i] = Builder(graph).node("Identity", "", {outputs[i]}, 1)->output();
    }
    graph.rename(outputs[i], names[i]);
  }
  if (outputs != found) graph.set_outputs(outputs);
}

}  // namespace

bool upgrade_opset(Model& model) {
  const Functions functions(model);
  UnknownOps unknown(functions);
  unknown.collect(model.graph());
  unknown.refuse_any();
  const std::int64_t from = model.opset();
  std::vector<std::string> outputs;
  for (const Value* output : model.graph().outputs()) outputs.push_back(output->name());
  const bool changed = Upgrader(functions, most_inlined_nodes(model)).run(model.graph(), from);
  if (kHasMicrosoft && expand_microsoft(model.graph())) PassWatch::note_change(kMicrosoft);
  keep_output_names(model.graph(), outputs);
  model.functions.clear();
  model.standard_functions.clear();
  model.set_opset("", kNewestOpset);
  return changed;
}

}  // namespace graft::passes
