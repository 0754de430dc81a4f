#include "io/proto/graph_validator.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/limits.h"
#include "core/base/time_limit.h"
#include "core/graph/node.h"
#include "io/proto/sort_nodes.h"
#include "io/proto/sparse_tensor.h"
#include "io/proto/tensor_proto.h"
#include "io/proto/type_proto.h"

namespace graft::onnx {
namespace {

constexpr int kNoProducer = -1;

}  // namespace

GraphValidator::GraphValidator(std::string where, const GraphValidator* outer, bool in_function,
                               const ExternalReader& external)
    : where_(std::move(where)),
      outer_(outer),
      in_function_(in_function),
      external_(external),
      depth_(outer != nullptr ? outer->depth_ + 1 : 1) {
  if (depth_ > limits().graph_depth) {
    fail(ErrorKind::model, where_, ": graphs nest deeper; ",
         limit_text("bodies", limits().graph_depth));
  }
}

NameSet GraphValidator::check(pb::GraphProto& graph) {
  check_value_infos(graph.input(), "input");
  check_value_infos(graph.output(), "output");
  check_value_infos(graph.value_info(), "value_info");
  for (const pb::ValueInfoProto& input : graph.input()) define(input.name(), kNoProducer, "input");
  check_initializers(graph);
  define_outputs(graph.node());
  check_nodes(*graph.mutable_node());
  for (const pb::ValueInfoProto& output : graph.output()) check_defined(output.name());
  return std::move(outer_reads_);
}

void GraphValidator::check(pb::FunctionProto& function) {
  check_value_infos(function.value_info(), "value_info");
  for (const std::string& input : function.input()) define(input, kNoProducer, "input");
  for (const pb::AttributeProto& attribute : function.attribute_proto()) {
    check_attribute(attribute, where_, false, external_);
    if (attribute.has_g() || attribute.graphs_size() > 0) {
      fail(ErrorKind::unsupported, where_, ": attribute '", attribute.name(),
           "' has a graph as its default");
    }
  }
  define_outputs(function.node());
  check_nodes(*function.mutable_node());
  for (const std::string& output : function.output()) check_defined(output);
}

void GraphValidator::define(std::string_view name, int producer, std::string_view kind) {
  if (name.empty()) fail(ErrorKind::model, where_, ": an ", kind, " has no name");
  if (!producers_.try_emplace(name, producer).second) {
    fail(ErrorKind::model, where_, ": the name '", name, "' is given twice, here by an ", kind);
  }
}

bool GraphValidator::is_visible(std::string_view name) const {
  for (const GraphValidator* scope = this; scope != nullptr; scope = scope->outer_) {
    if (scope->producers_.contains(name)) return true;
  }
  return false;
}

void GraphValidator::check_value_infos(const Repeated<pb::ValueInfoProto>& infos,
                                       std::string_view kind) const {
  for (const pb::ValueInfoProto& info : infos) {
    if (info.has_type()) check_type(info.type(), text(where_, ": ", kind, " '", info.name(), "'"));
  }
}

void GraphValidator::check_initializers(const pb::GraphProto& graph) {
  NameSet names;
  const auto add = [&](std::string_view name) {
    if (!names.insert(name).second) {
      fail(ErrorKind::model, where_, ": initializer '", name, "' is there twice");
    }
    if (!producers_.contains(name)) define(name, kNoProducer, "initializer");
  };
  for (const pb::TensorProto& tensor : graph.initializer()) {
    add(tensor.name());
    check_tensor(tensor, text("initializer '", tensor.name(), "'"), external_);
  }
  for (const pb::SparseTensorProto& sparse : graph.sparse_initializer()) {
    add(sparse.values().name());
    check_sparse_tensor(sparse, text("initializer '", sparse.values().name(), "'"));
  }
}

void GraphValidator::define_outputs(const Nodes& nodes) {
  for (int i = 0; i < nodes.size(); ++i) {
    for (const std::string& output : nodes[i].output()) {
      if (!output.empty()) define(output, i, "output of " + label(nodes[i]));
    }
  }
}

void GraphValidator::check_nodes(Nodes& nodes) {
  std::vector<std::vector<int>> depends(static_cast<std::size_t>(nodes.size()));
  for (int i = 0; i < nodes.size(); ++i) {
    check_time();
    check_reads(nodes[i], depends[static_cast<std::size_t>(i)]);
  }
  sort_nodes(nodes, depends, where_);
}

void GraphValidator::check_reads(pb::NodeProto& node, std::vector<int>& depends) {
  if (node.op_type().empty()) fail(ErrorKind::model, where_, ": ", label(node), " has no op_type");
  if (node.domain() == kInternalDomain) {
    fail(ErrorKind::model, where_, ": ", label(node), " is of the domain '", kInternalDomain,
         "', whose ops exist only inside a training step");
  }
  NameSet reads;
  for (const std::string& input : node.input()) {
    if (input.empty()) continue;
    if (!is_visible(input)) {
      fail(ErrorKind::model, where_, ": ", label(node), " reads '", input,
           "', which is no input, no initializer and no node's output");
    }
    reads.insert(input);
  }
  check_attributes(node, reads);
  for (const std::string_view name : reads) {
    const auto at = producers_.find(name);
    if (at == producers_.end()) {
      outer_reads_.insert(name);
    } else if (at->second != kNoProducer) {
      depends.push_back(at->second);
    }
  }
  std::ranges::sort(depends);
}

void GraphValidator::check_attributes(pb::NodeProto& node, NameSet& reads) const {
  const std::string who = label(node);
  if (node.attribute_size() > kMaxAttributes) {
    fail(ErrorKind::model, who, " has ", node.attribute_size(), " attributes, more than ",
         kMaxAttributes);
  }
  const auto check_body = [&](const std::string& name, pb::GraphProto& body) {
    GraphValidator validator(text("body '", name, "' of ", who), this, in_function_, external_);
    reads.merge(validator.check(body));
  };
  NameSet names;
  for (pb::AttributeProto& attribute : *node.mutable_attribute()) {
    if (!names.insert(attribute.name()).second) {
      fail(ErrorKind::model, who, " has attribute '", attribute.name(), "' twice");
    }
    check_attribute(attribute, who, in_function_, external_);
    if (attribute.has_g()) check_body(attribute.name(), *attribute.mutable_g());
    for (pb::GraphProto& body : *attribute.mutable_graphs()) check_body(attribute.name(), body);
  }
}

void GraphValidator::check_defined(std::string_view output) const {
  if (!producers_.contains(output)) {
    fail(ErrorKind::model, where_, ": its output '", output,
         "' is no input, no initializer and no node's output");
  }
}

}  // namespace graft::onnx
