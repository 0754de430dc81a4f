#include "io/proto/standard_functions.h"

#include <set>
#include <utility>

#include "io/proto/op_schemas.h"
#include "io/proto/reader.h"

namespace graft::onnx {
namespace {

/// Attributes that a call leaves out have the schema's default values.
void add_defaults(const pb::OpSchema& schema, pb::FunctionProto& function) {
  for (const auto& [name, attribute] : schema.attributes()) {
    if (attribute.default_value.has_type()) {
      *function.add_attribute_proto() = attribute.default_value;
    }
  }
}

class Collector {
 public:
  explicit Collector(Model& model) : model_(model) {
    for (const Function& function : model.functions) known_.emplace(function.domain, function.name);
  }

  void run() {
    visit(model_.graph(), model_.opset_imports);
    for (const Function& function : model_.functions) {
      visit(*function.body, function.opset_imports);
    }
    for (std::size_t i = 0; i < model_.standard_functions.size(); ++i) {
      // A copy: visiting adds to the list.
      const std::vector<OpsetImport> imports = model_.standard_functions[i].opset_imports;
      visit(*model_.standard_functions[i].body, imports);
    }
  }

 private:
  void visit(const Graph& graph, const std::vector<OpsetImport>& imports) {
    for (const auto& node : graph.nodes()) {
      for_each_body(*node, [&](const Graph& body) { visit(body, imports); });
      if (known_.emplace(node->domain(), node->op_type()).second) add(*node, imports);
    }
  }

  void add(const Node& node, const std::vector<OpsetImport>& imports) {
    Model versions;
    versions.opset_imports = imports;
    const int opset = static_cast<int>(versions.opset(node.domain()));
    const pb::OpSchema* const schema =
        OpSchemas::instance().GetSchema(node.op_type(), opset, node.domain());
    if (schema == nullptr || !schema->HasFunction()) return;
    const pb::FunctionProto* body = schema->GetFunction(opset);
    // A body may be written in a later opset than the one that the op stands in: it says its own.
    if (body == nullptr) body = schema->GetFunction(schema->function_opset_versions().front());
    if (body == nullptr) return;
    pb::FunctionProto copy = *body;
    add_defaults(*schema, copy);
    model_.standard_functions.push_back(take_function(copy, ExternalReader({})));
  }

  Model& model_;
  std::set<std::pair<std::string, std::string>> known_;
};

}  // namespace

void attach_standard_functions(Model& model) {
  Collector(model).run();
}

}  // namespace graft::onnx
