#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>

#include "core/graph/graph.h"
#include "io/proto/onnx_proto.h"

namespace graft::onnx {

using ValueInfos = Repeated<pb::ValueInfoProto>;

/// The type that the file gives a value; empty when it gives none.
pb::TypeProto declared_type(const Value& value);

/// Distributes a graph's ValueInfoProtos to its values. A value may stand among inputs, outputs and
/// value_info at once: `PreservedValue::info` is a GraphProto with its entries, names left out.
class ValueInfoReader {
 public:
  explicit ValueInfoReader(Graph& graph) : graph_(graph) {}

  /// Makes the graph's inputs.
  void take_inputs(ValueInfos& infos);
  /// After the nodes: makes the graph's outputs.
  void take_outputs(ValueInfos& infos);
  /// What remains in `infos` keeps the order, and the entries for names that no value has.
  void take_value_infos(ValueInfos& infos);
  /// Sets the types of the values met, and what is kept of them.
  void finish();

 private:
  Graph& graph_;
  std::unordered_map<Value*, pb::GraphProto> kept_;
};

/// The way back.
class ValueInfoWriter {
 public:
  explicit ValueInfoWriter(const Graph& graph) : graph_(graph) {}

  void put_inputs(ValueInfos& infos);
  void put_outputs(ValueInfos& infos);
  /// `kept` is what `take_value_infos` left.
  void put_value_infos(const ValueInfos& kept, ValueInfos& infos);

 private:
  struct Kept {
    pb::GraphProto entries;
    bool type_changed = false;
    int inner_written = 0;
    int outputs_written = 0;
  };
  Kept& kept(const Value& value);
  void put(const Value& value, const Kept& kept, const pb::ValueInfoProto* entry,
           ValueInfos& infos);
  bool put_next_inner(const Value& value, ValueInfos& infos);

  const Graph& graph_;
  bool has_outputs_ = false;  // a function's outputs have names only
  std::unordered_map<const Value*, Kept> kept_;
};

}  // namespace graft::onnx
