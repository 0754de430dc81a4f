#include "core/layers/change_opset.h"

#include <algorithm>
#include <array>

#include "core/layers/older_forms.h"
#include "core/ops/cost.h"
#include "core/ops/registry.h"
#include "core/passes/pass.h"
#include "core/passes/splice_internal.h"

namespace graft::edit {
namespace {

/// Element types alone: what a node has of those, it has in any version.
bool only_brings_types(const Since& since) {
  static constexpr std::array<std::string_view, 12> kTypes{"",
                                                           "strings, which Graft does not compare",
                                                           "bfloat16",
                                                           "float16, bfloat16",
                                                           "integers",
                                                           "float 8",
                                                           "signed integers",
                                                           "sequences",
                                                           "float types only",
                                                           "other floats",
                                                           "types of scale and statistics",
                                                           "float 8, scales of short types"};
  return std::ranges::find(kTypes, since.change) != kTypes.end();
}

bool has_type(const Node& node, DType wanted) {
  const auto is_wanted = [&](const Value* value) {
    return value != nullptr && value->dtype() == wanted;
  };
  for (int i = 0; i < node.output_count(); ++i) {
    if (is_wanted(node.output(i))) return true;
  }
  return std::ranges::any_of(node.inputs(), is_wanted);
}

/// Runtimes refuse a type that the op did not have at the time.
void check_types(const OlderForm& form, const OpDef& def) {
  for (const Since& since : def.since) {
    if (since.version <= form.version) continue;
    const bool brings_bf16 = since.change.find("bfloat16") != std::string_view::npos;
    const bool brings_f16 = since.change.starts_with("float16");
    if (since.change.starts_with("strings") && has_type(form.node, DType::string)) {
      form.refuse(text("it for strings, which came with opset ", since.version));
    }
    if ((brings_bf16 && has_type(form.node, DType::bf16)) ||
        (brings_f16 && has_type(form.node, DType::f16))) {
      form.refuse(text("it in ", brings_f16 ? "half precision" : "bf16", ", which came with opset ",
                       since.version));
    }
  }
}

/// What a new op is in older ones.
std::vector<Expr> write_anew(const OlderForm& form, const OpDef& def) {
  for (const OlderFormRule& rule : op_rules()) {
    if (rule.op != def.name) continue;
    std::vector<Expr> results = rule.undo(form);
    if (!results.empty()) return results;
  }
  const int first = def.since.front().version;
  const Decomposition* const parts = def.backward.decomposition();
  if (parts == nullptr) form.refuse(text("this op, which came with opset ", first));
  if (!has_known_shapes(form.node)) {
    form.refuse(text("this op, which came with opset ", first,
                     "; it can be written in older ones once all shapes are known: set the batch"));
  }
  return parts->expand(form.node, form.builder);
}

/// Undoes what newer versions brought to the op. Returns what takes the node's place, if anything.
std::vector<Expr> undo_changes(const OlderForm& form, const OpDef& def) {
  for (const OlderFormRule& rule : setting_rules()) {
    if (rule.op != def.name || rule.since <= form.version) continue;
    std::vector<Expr> results = rule.undo(form);
    if (!results.empty()) return results;
  }
  for (const Since& since : def.since) {
    if (since.version <= form.version || only_brings_types(since)) continue;
    const bool is_undone = std::ranges::any_of(setting_rules(), [&](const OlderFormRule& rule) {
      return rule.op == def.name && rule.since == since.version;
    });
    if (!is_undone) form.refuse(text("its newer form: ", since.change));
  }
  return {};
}

/// Whether a node gave its place to others, which may be too new themselves.
bool lower_once(Graph& graph, std::int64_t version) {
  bool changed = false;
  Node* next = graph.nodes().empty() ? nullptr : graph.nodes().front().get();
  while (next != nullptr) {
    Node* const node = next;
    next = graph.next(node);
    for_each_body(*node, [&](Graph& body) {
      while (lower_once(body, version)) changed = true;
    });
    const OpDef* const def = OpRegistry::instance().find(*node);
    if (def == nullptr || !def->domain.empty() || def->since.empty()) continue;
    if (def->since.back().version <= version) continue;
    Builder builder(graph, node, (node->name().empty() ? node->op_type() : node->name()) + "/");
    const OlderForm form{*node, version, builder};
    check_types(form, *def);
    const bool is_new = def->since.front().version > version;
    const std::vector<Expr> results = is_new ? write_anew(form, *def) : undo_changes(form, *def);
    if (results.empty()) continue;
    std::vector<Value*> values;
    for (std::size_t i = 0; i < results.size(); ++i) {
      values.push_back(results[i].value());
      const Value* const output = node->output(static_cast<int>(i));
      // Inference may see less in the parts than in the whole.
      if (output != nullptr) values[i]->set_type(output->type());
    }
    passes::replace_node(*node, values);
    changed = true;
  }
  return changed;
}

/// Initializers that served as inputs which are attributes now.
void drop_unread(Graph& graph, const std::vector<Value*>& before) {
  const std::vector<Value*> initializers = graph.initializers();
  for (Value* value : initializers) {
    const bool is_own = std::ranges::find(before, value) != before.end();
    if (!is_own && value->is_unused() && !value->is_graph_input()) graph.remove_initializer(value);
  }
}

void bring_to(Model& model, std::int64_t version) {
  Graph& graph = model.graph();
  // What nobody read before is the file's own matter.
  std::vector<Value*> unread;
  for (Value* value : graph.initializers()) {
    if (value->is_unused()) unread.push_back(value);
  }
  std::vector<ValueType> declared;
  for (const Value* output : graph.outputs()) declared.push_back(output->type());
  passes::upgrade_opset(model);
  passes::infer_shapes(graph);
  while (lower_once(graph, version)) {
  }
  drop_unread(graph, unread);
  for (std::size_t i = 0; i < declared.size(); ++i) {
    // The file may know more than inference does: names of dims, say.
    if (declared[i].shape) graph.outputs()[i]->set_type(declared[i]);
  }
  model.set_opset("", version);
}

}  // namespace

void change_opset(Model& model, std::int64_t version) {
  if (version < kOldestTarget || version > kNewestOpset) {
    fail(ErrorKind::argument, "opset ", version, ": wanted one from ", kOldestTarget, " to ",
         kNewestOpset);
  }
  if (model.opset() == version) return;
  Model copy = model.clone();
  for (Model* one : {&copy, &model}) bring_to(*one, version);  // what throws, throws for the copy
}

}  // namespace graft::edit
