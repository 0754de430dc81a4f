#include "io/proto/value_info.h"

#include <algorithm>
#include <string_view>

#include "io/proto/parse.h"
#include "io/proto/type_proto.h"

namespace graft::onnx {
namespace {

// Names in what take_value_infos leaves begin with one of these.
constexpr char kOfValue = '=';
constexpr char kOfNothing = '!';

/// The entry that says a value's type: an input's own, else an output's, else value_info.
const pb::ValueInfoProto* leading_entry(const pb::GraphProto& entries) {
  if (entries.input_size() > 0) return &entries.input(0);
  if (entries.output_size() > 0) return &entries.output(0);
  if (entries.value_info_size() > 0) return &entries.value_info(0);
  return nullptr;
}

/// An initializer that is no input has its tensor's type, whatever the file says.
bool has_tensor_type(const Value& value) {
  return value.is_initializer() && !value.is_graph_input();
}

/// Whether no tensor of one type is of the other.
bool contradict(const ValueType& a, const ValueType& b) {
  const auto agree = [](const Dim& x, const Dim& y) {
    return !x.is_known() || !y.is_known() || x.value() == y.value();
  };
  if (a.dtype != b.dtype && a.dtype != DType::undefined && b.dtype != DType::undefined) return true;
  if (!a.shape || !b.shape) return false;
  return !std::ranges::equal(a.shape->dims(), b.shape->dims(), agree);
}

template <class Visit>
void for_each_value(const Graph& graph, Visit&& visit) {
  for (const Value* input : graph.inputs()) visit(*input);
  for (const Value* initializer : graph.initializers()) {
    if (!initializer->is_graph_input()) visit(*initializer);
  }
  for (const auto& node : graph.nodes()) {
    for (int i = 0; i < node->output_count(); ++i) {
      if (node->output(i) != nullptr) visit(*node->output(i));
    }
  }
}

}  // namespace

pb::TypeProto declared_type(const Value& value) {
  const auto entries = unpack<pb::GraphProto>(value.graph().preserved_of(&value).info);
  const pb::ValueInfoProto* const leading = leading_entry(entries);
  return leading == nullptr ? pb::TypeProto() : leading->type();
}

void ValueInfoReader::take_inputs(ValueInfos& infos) {
  for (pb::ValueInfoProto& info : infos) {
    Value* const value = graph_.add_input(info.name(), {});
    info.clear_name();
    kept_[value].mutable_input()->Add(std::move(info));
  }
  infos.Clear();
}

void ValueInfoReader::take_outputs(ValueInfos& infos) {
  for (pb::ValueInfoProto& info : infos) {
    Value* const value = graph_.find(info.name());
    graph_.add_output(value);
    info.clear_name();
    kept_[value].mutable_output()->Add(std::move(info));
  }
  infos.Clear();
}

void ValueInfoReader::take_value_infos(ValueInfos& infos) {
  for (pb::ValueInfoProto& info : infos) {
    const std::string name = info.name();
    Value* const value = graph_.find(name);
    if (value == nullptr) {
      info.set_name(kOfNothing + name);
      continue;
    }
    graph_.preserve(value).in_value_info = true;
    info.clear_name();
    kept_[value].mutable_value_info()->Add(std::move(info));
    info.Clear();
    info.set_name(kOfValue + name);
  }
}

void ValueInfoReader::finish() {
  for (auto& [value, entries] : kept_) {
    if (!has_tensor_type(*value)) value->set_type(to_value_type(leading_entry(entries)->type()));
    graph_.preserve(value).info = pack(entries);
  }
}

ValueInfoWriter::Kept& ValueInfoWriter::kept(const Value& value) {
  const auto [at, is_new] = kept_.try_emplace(&value);
  Kept& result = at->second;
  if (!is_new) return result;
  result.entries = unpack<pb::GraphProto>(graph_.preserved_of(&value).info);
  const pb::ValueInfoProto* const leading = leading_entry(result.entries);
  const ValueType imported = leading != nullptr ? to_value_type(leading->type()) : ValueType{};
  result.type_changed =
      leading == nullptr ||
      (has_tensor_type(value) ? contradict(imported, value.type()) : !(imported == value.type()));
  return result;
}

void ValueInfoWriter::put(const Value& value, const Kept& kept, const pb::ValueInfoProto* entry,
                          ValueInfos& infos) {
  pb::ValueInfoProto& info = *infos.Add();
  const bool is_elsewhere = entry == nullptr;  // in another list: dims of -1 are not kept there
  if (is_elsewhere) entry = leading_entry(kept.entries);
  if (entry != nullptr) info = *entry;
  info.set_name(value.name());
  if (!kept.type_changed && !is_elsewhere) return;
  put_type(value.type(), *info.mutable_type());
  if (info.type().ByteSizeLong() == 0) info.clear_type();
}

void ValueInfoWriter::put_inputs(ValueInfos& infos) {
  for (const Value* input : graph_.inputs()) {
    const Kept& entries = kept(*input);
    put(*input, entries, entries.entries.input_size() > 0 ? &entries.entries.input(0) : nullptr,
        infos);
  }
}

void ValueInfoWriter::put_outputs(ValueInfos& infos) {
  has_outputs_ = true;
  for (const Value* output : graph_.outputs()) {
    Kept& entries = kept(*output);
    const int at = entries.outputs_written++;
    put(*output, entries,
        at < entries.entries.output_size() ? &entries.entries.output(at) : nullptr, infos);
  }
}

bool ValueInfoWriter::put_next_inner(const Value& value, ValueInfos& infos) {
  if (!graph_.preserved_of(&value).in_value_info) return false;
  Kept& entries = kept(value);
  // A value that has become an output since is described there.
  if (has_outputs_ && value.is_graph_output() && entries.entries.output_size() == 0) return false;
  const int at = entries.inner_written;
  const int count = entries.entries.value_info_size();
  if (at >= (count > 0 ? count : 1)) return false;
  ++entries.inner_written;
  put(value, entries, at < count ? &entries.entries.value_info(at) : nullptr, infos);
  return true;
}

void ValueInfoWriter::put_value_infos(const ValueInfos& kept_infos, ValueInfos& infos) {
  for (const pb::ValueInfoProto& info : kept_infos) {
    const std::string name = info.name().substr(1);
    if (info.name().starts_with(kOfNothing)) {
      *infos.Add() = info;
      infos.rbegin()->set_name(name);
    } else if (const Value* const value = graph_.find(name)) {
      put_next_inner(*value, infos);
    }
  }
  // Renamed values and new ones.
  for_each_value(graph_, [&](const Value& value) {
    while (put_next_inner(value, infos)) continue;
  });
}

}  // namespace graft::onnx
