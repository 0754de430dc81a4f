#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "io/proto/external_data.h"
#include "io/proto/onnx_proto.h"

namespace graft::onnx {

/// No op has a tenth of them; look-up by name is linear.
inline constexpr int kMaxAttributes = 256;

using Nodes = Repeated<pb::NodeProto>;
using NameSet = std::unordered_set<std::string_view>;

/// Checks one graph or function body, and the bodies of its nodes by validators of their own. Views
/// of names stay valid: messages are reordered, never changed.
class GraphValidator {
 public:
  /// `where` names the graph in errors; `outer` is null at the top and in functions.
  GraphValidator(std::string where, const GraphValidator* outer, bool in_function,
                 const ExternalReader& external);

  /// Checks all and sorts the nodes. Returns the names of outer values that are read.
  NameSet check(pb::GraphProto& graph);
  void check(pb::FunctionProto& function);

 private:
  void define(std::string_view name, int producer, std::string_view kind);
  bool is_visible(std::string_view name) const;
  void check_value_infos(const Repeated<pb::ValueInfoProto>& infos, std::string_view kind) const;
  void check_initializers(const pb::GraphProto& graph);
  void define_outputs(const Nodes& nodes);
  void check_nodes(Nodes& nodes);
  void check_reads(pb::NodeProto& node, std::vector<int>& depends);
  void check_attributes(pb::NodeProto& node, NameSet& reads) const;
  void check_defined(std::string_view output) const;

  std::string where_;
  const GraphValidator* outer_;
  bool in_function_;
  const ExternalReader& external_;
  int depth_;
  std::unordered_map<std::string_view, int> producers_;  // -1 for inputs and initializers
  NameSet outer_reads_;
};

/// The attribute's type fits its fields, and its tensors are sound; bodies are left to the caller.
/// `who` is the node's label. Throws Error{model}.
void check_attribute(const pb::AttributeProto& attribute, std::string_view who, bool in_function,
                     const ExternalReader& external);

}  // namespace graft::onnx
