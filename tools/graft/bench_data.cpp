#include "tools/graft/bench_data.h"

#include <algorithm>

#include "core/base/rng.h"
#include "core/passes/pass.h"
#include "tools/graft/cost.h"
#include "tools/graft/data_set.h"
#include "tools/graft/tensor_files.h"
#include "train/compile.h"
#include "train/judged.h"

namespace graft::cli {
namespace {

Tensor made_up(const ValueType& type, std::uint64_t stream, std::int64_t bound) {
  const Shape shape = type.shape->known().value();
  Tensor tensor = Tensor::empty(DType::f64, shape);
  const Philox random(0, stream);
  std::uint64_t index = 0;
  for (double& value : tensor.values<double>()) {
    value = is_float(type.dtype)
                ? random.normal(index)
                : static_cast<double>(random.below(index, static_cast<std::uint64_t>(bound)));
    ++index;
  }
  return tensor.cast(type.dtype);
}

std::vector<Datum> make_up_inputs(const Graph& graph, std::int64_t batch) {
  std::string missing;
  const auto types = bound_types(graph, batch, &missing);
  if (!types) {
    fail(ErrorKind::shape, "the shape of input ", missing,
         " is not known; give --input or --inputs");
  }
  std::vector<Datum> inputs;
  // Small integers are valid as classes, tokens and indices alike.
  for (const ValueType& type : *types) inputs.emplace_back(made_up(type, inputs.size(), 2));
  return inputs;
}

std::vector<Datum> load_named_inputs(const std::vector<std::string>& arguments,
                                     const Graph& graph) {
  std::map<std::string, Datum> files = load_named_data(arguments, graph);
  std::vector<Datum> inputs;
  for (const Value* input : passes::required_inputs(graph)) {
    const auto at = files.find(input->name());
    if (at == files.end()) fail(ErrorKind::argument, "no --input for '", input->name(), "'");
    inputs.push_back(at->second);
    files.erase(at);
  }
  if (!files.empty())
    fail(ErrorKind::argument, "the model has no input '", files.begin()->first, "'");
  return inputs;
}

Tensor make_up_target(const Loss& loss, const Value& output, std::uint64_t stream) {
  const ValueType& prediction = output.type();
  const Shape shape = prediction.shape ? prediction.shape->known().value_or(Shape()) : Shape();
  const std::int64_t classes = std::max<std::int64_t>(class_count(loss, shape), 1);
  return made_up(target_type(loss, prediction), stream, classes);
}

std::vector<Tensor> make_targets(const BenchDataArguments& arguments, const Graph& graph,
                                 const Loss& loss) {
  constexpr std::uint64_t kStream = 1000;
  std::vector<Tensor> targets;
  for (const std::string& file : arguments.targets) targets.push_back(load_tensor_file(file));
  if (!targets.empty()) return targets;
  const JudgedOutputs chosen = choose_outputs(graph, loss, arguments.output);
  if (loss.parts.empty()) return {make_up_target(loss, *chosen.outputs.front(), kStream)};
  for (std::size_t i = 0; i < loss.parts.size(); ++i) {
    const Value& output = *chosen.outputs[chosen.judged[i]];
    targets.push_back(make_up_target(loss.parts[i], output, kStream + i));
  }
  return targets;
}

}  // namespace

std::vector<Tensor> BenchData::tensors() const {
  std::vector<Tensor> all;
  for (const Datum& input : inputs) all.push_back(input.tensor());
  return all;
}

BenchData make_bench_data(const BenchDataArguments& arguments, Model& model, const Loss* loss) {
  constexpr std::int64_t kBatch = 64;
  BenchData data;
  if (!arguments.folder.empty()) {
    data.inputs = feed(model, load_inputs(arguments.folder, model));
  } else if (!arguments.files.empty()) {
    data.inputs = load_named_inputs(arguments.files, model.graph());
  } else {
    data.inputs = make_up_inputs(newest_form(model).graph(), arguments.batch.value_or(kBatch));
  }
  if (!std::ranges::all_of(data.inputs, [](const Datum& input) { return input.is_tensor(); })) {
    return data;
  }
  for (const Tensor& input : data.tensors()) {
    data.types.push_back({input.dtype(), SymShape(input.shape())});
  }
  data.graph = bound_graph(newest_form(model), data.types);
  if (loss != nullptr) data.targets = make_targets(arguments, *data.graph, *loss);
  return data;
}

}  // namespace graft::cli
