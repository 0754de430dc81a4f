#include "tools/graft/arguments.h"

#include <algorithm>
#include <cmath>
#include <iostream>

#include "core/base/closest.h"
#include "core/base/parallel.h"
#include "core/passes/pass.h"
#include "data/resize.h"
#include "data/subset.h"
#include "io/file.h"
#include "io/onnx.h"
#include "tools/graft/format_internal.h"
#include "tools/graft/numbers.h"
#include "tools/graft/options.h"
#include "tools/graft/verbosity.h"
#include "train/compile.h"
#include "train/judged.h"
#include "train/metric.h"

namespace graft::cli {

namespace {

/// More than cores give the bits of a larger machine; far more take the time of all for themselves.
int most_threads() {
  constexpr int kForAnyMachine = 64;
  return std::max(kForAnyMachine, 2 * thread_count());
}

}  // namespace

void add_arguments(CLI::App& app, ComputeArguments& arguments) {
  const OptionGroup group(app, "Machine");
  app.add_option("--device", arguments.device, "what to compute on; see graft devices")
      ->capture_default_str();
  const auto choose = [&arguments](const std::string& text) {
    if (text != "none" && text != "cpu") {
      throw CLI::ValidationError("--fallback", "'" + text + "' is neither none nor cpu");
    }
    arguments.fallback = text == "cpu" ? Fallback::cpu : Fallback::none;
  };
  app.add_option_function<std::string>(
         "--fallback", choose, "what runs ops for which the device has no kernel; cpu copies")
      ->type_name("none|cpu");
  app.add_option("--threads,-j", arguments.threads, "threads to compute with (default: all cores)")
      ->check(CLI::Range(1, most_threads()));
}

void apply(const ComputeArguments& arguments) {
  device(arguments.device);
  if (arguments.threads > 0) set_thread_count(arguments.threads);
}

void add_seed_argument(CLI::App& app, std::uint64_t& seed, const char* help) {
  // By hand: strtoull takes -1 for 2^64 - 1.
  const auto parse = [&seed](const std::string& text) {
    const std::optional<std::uint64_t> number = number_in<std::uint64_t>(text);
    if (!number) {
      throw CLI::ValidationError("--seed", "'" + text + "' is no whole number from 0 to 2^64 - 1");
    }
    seed = *number;
  };
  app.add_option_function<std::string>("--seed", parse, help)
      ->type_name("UINT")
      ->default_str(std::to_string(seed));
}

Shape parse_shape(const std::string& text, std::string_view option) {
  std::optional<std::vector<std::int64_t>> dims = numbers_in<std::int64_t>(text, 'x');
  if (!dims || std::ranges::min(*dims) < 1) {
    fail(ErrorKind::argument, option, " '", text, "' is no shape, wanted one like 1x28x28");
  }
  return Shape(*std::move(dims));
}

void add_arguments(CLI::App& app, DataArguments& arguments) {
  const OptionGroup group(app, "Data");
  app.add_option("--data,--dataset", arguments.spec,
                 "fashion-mnist[:DIR], mnist:DIR, cifar10:DIR, csv:FILE or npz:FILE")
      ->required()
      ->type_name("SPEC");
  app.add_option("--batch,--batch-size", arguments.batch, "samples in a batch")
      ->capture_default_str()
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 32));
  app.add_option("--limit,--max-samples", arguments.limit, "use only so many samples")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 62));
  app.add_option("--normalize", arguments.normalize,
                 "'data': by the data set's known statistics, MEAN[,...]:DEVIATION[,...] with one "
                 "number a channel, or 'none' (default: as the file was trained, else pixels in "
                 "[0, 1])");
  app.add_option("--resize", arguments.resize,
                 "make images so large, before anything else, or 'none' (default: as the file was "
                 "trained)")
      ->type_name("HxW");
}

void add_split_argument(CLI::App& app, std::string& split) {
  const OptionGroup group(app, "Data");
  limit_to(*app.add_option("--split", split, "part of the data")->capture_default_str(),
           {"train", "test"});
}

namespace {

const Value* find_output(const Model& model, const std::string& name) {
  for (const Value* output : model.graph().outputs()) {
    if (name.empty() || output->name() == name) return output;
  }
  return nullptr;
}

CsvTarget csv_target_of(const LossArguments& arguments, const Model& model) {
  if (arguments.name == "auto") {
    const Value* const output = find_output(model, arguments.output);
    if (output == nullptr || !output->shape()) return CsvTarget::automatic;
    const SymShape& shape = *output->shape();
    const bool is_column =
        shape.rank() == 1 || (shape.rank() == 2 && shape[1].is_known() && shape[1].value() == 1);
    return is_column ? CsvTarget::number : CsvTarget::automatic;
  }
  const Loss loss = loss_from_spec(arguments.name);
  if (has_class_targets(loss) || loss.name == "triplet") return CsvTarget::class_index;
  const bool takes_any = is_in_graph(loss) || !loss.parts.empty() || has_sequence_targets(loss);
  return takes_any ? CsvTarget::automatic : CsvTarget::number;
}

}  // namespace

WantedTypes wanted_types(const Model& model, const std::string& output) {
  WantedTypes wanted;
  for (const Value* input : passes::required_inputs(model.graph())) {
    wanted.inputs.push_back(input->dtype());
  }
  const Value* const judged = find_output(model, output);
  const bool is_wide =
      judged != nullptr && (judged->dtype() == DType::f32 || judged->dtype() == DType::f64);
  if (is_wide) wanted.target = judged->dtype();
  return wanted;
}

WantedTypes wanted_types(const Model& model, const LossArguments& arguments) {
  WantedTypes wanted = wanted_types(model, arguments.output);
  wanted.csv_target = csv_target_of(arguments, model);
  return wanted;
}

std::shared_ptr<Dataset> open(const DataArguments& arguments, const std::string& spec, Split split,
                              const WantedTypes& wanted) {
  std::shared_ptr<Dataset> dataset = open_data(spec, split, wanted);
  if (dataset->size() == 0) fail(ErrorKind::io, spec, ": no samples");
  if (arguments.limit > 0) dataset = first_samples(std::move(dataset), arguments.limit);
  const std::optional<Shape> size = image_size(arguments);
  return size ? resized(std::move(dataset), (*size)[0], (*size)[1]) : dataset;
}

std::optional<Shape> image_size(const DataArguments& arguments) {
  if (arguments.resize.empty() || arguments.resize == "none") return std::nullopt;
  Shape size = parse_shape(arguments.resize, "--resize");
  if (size.rank() != 2) {
    fail(ErrorKind::argument, "--resize '", arguments.resize, "': wanted HxW, like 224x224");
  }
  return size;
}

namespace {

std::vector<float> parse_numbers(std::string_view list, const std::string& whole) {
  std::optional<std::vector<float>> numbers = numbers_in<float>(list, ',');
  const auto is_finite = [](float number) { return std::isfinite(number); };
  if (!numbers || !std::ranges::all_of(*numbers, is_finite)) {
    fail(ErrorKind::argument, "--normalize '", whole,
         "' is neither 'data' nor MEAN[,...]:DEVIATION[,...] in finite numbers");
  }
  return *std::move(numbers);
}

}  // namespace

std::vector<Transform> normalization(const DataArguments& arguments) {
  const std::string& wanted = arguments.normalize;
  if (wanted.empty() || wanted == "none") return {};
  if (wanted == "data") {
    const std::optional<Normalize> known = known_normalization(arguments.spec);
    if (known) return {*known};
    fail(ErrorKind::argument, "--normalize data: the statistics of '", arguments.spec,
         "' are not known; give them as MEAN:DEVIATION");
  }
  const std::string_view all = wanted;
  const std::size_t colon = std::min(all.find(':'), all.size());
  return {Normalize{parse_numbers(all.substr(0, colon), wanted),
                    parse_numbers(all.substr(std::min(colon + 1, all.size())), wanted)}};
}

void add_arguments(CLI::App& app, LossArguments& arguments) {
  const OptionGroup group(app, "Loss");
  app.add_option("--loss,--criterion", arguments.name,
                 "auto: by what the data's targets are; settings follow, as huber:delta=0.5; "
                 "graph:OUTPUT is one that the model computes; OUTPUT=[WEIGHT*]LOSS+OUTPUT=... "
                 "judges several outputs")
      ->type_name("auto|" + one_of(loss_names()))
      ->capture_default_str();
  app.add_option("--output", arguments.output, "the output that is judged (default: the first)");
}

void add_metrics_argument(CLI::App& app, std::vector<std::string>& names) {
  app.add_option("--metrics", names,
                 "what to measure beside loss and accuracy: " + joined(metric_names()))
      ->delimiter(',')
      ->type_name("NAME,...");
}

Loss choose_loss(const LossArguments& arguments) {
  return loss_from_spec(arguments.name == "auto" ? "cross_entropy" : arguments.name);
}

Loss choose_loss(const LossArguments& arguments, const Model& model, const Dataset& dataset) {
  Loss loss = mse();
  if (arguments.name != "auto") {
    loss = loss_from_spec(arguments.name);
  } else if (dataset.info().target.dtype == DType::i64) {
    const Value* const output = find_output(model, arguments.output);
    const bool is_log =
        output != nullptr && output->producer() != nullptr && output->producer()->is("LogSoftmax");
    loss = is_log ? nll() : cross_entropy();
  }
  if (!is_in_graph(loss) && loss.parts.empty() && !dataset.info().further_targets.empty()) {
    fail(ErrorKind::argument, "the data have ", 1 + dataset.info().further_targets.size(),
         " targets, the loss takes one; say which output each judges: --loss "
         "'OUTPUT=LOSS+OUTPUT=LOSS'");
  }
  if (arguments.label_smoothing != 0.0F && loss.name != "cross_entropy") {
    fail(ErrorKind::argument, "--label-smoothing is for cross_entropy, the loss is ", loss.name);
  }
  if (arguments.label_smoothing != 0.0F) loss.label_smoothing = arguments.label_smoothing;
  return loss;
}

namespace {

/// Throws Error{shape} if the model fixes its batch to a number that not all batches have.
void check_batches(const std::vector<Value*>& inputs, std::int64_t samples, std::int64_t batch) {
  for (const Value* input : inputs) {
    const std::optional<SymShape>& shape = input->shape();
    if (!shape || shape->rank() == 0 || !(*shape)[0].is_known()) continue;
    const std::int64_t fixed = (*shape)[0].value();
    const std::int64_t last = samples % batch == 0 ? batch : samples % batch;
    const std::int64_t first = std::min(batch, samples);
    if (first == fixed && last == fixed) continue;
    fail(ErrorKind::shape, "input '", input->name(), "' is ", input->type(),
         ", which fixes the batch to ", fixed, ", but the batches have ", first,
         first == last ? "" : text(" and ", last), " samples; free it by graft edit --batch any");
  }
}

/// The data's inputs go to the model's in order, so names in another order are an error.
void check_names(const std::vector<Value*>& wanted, const std::vector<SampleField>& given) {
  std::vector<std::string> names;
  for (const Value* input : wanted) names.push_back(input->name());
  std::vector<std::string> in_data;
  for (const SampleField& field : given) in_data.push_back(field.name);
  if (names.size() != in_data.size()) {
    fail(ErrorKind::shape, "the model has ", names.size(), " inputs (", quoted_list(names),
         "), the data ", in_data.size(), " (", quoted_list(in_data), ")");
  }
  if (names != in_data && std::ranges::is_permutation(names, in_data)) {
    fail(ErrorKind::argument, "the data hold ", quoted_list(in_data), "; the model takes ",
         quoted_list(names), ": write them in that order");
  }
}

}  // namespace

void check_inputs_fit(const std::vector<Value*>& inputs, const DatasetInfo& info,
                      std::int64_t batch) {
  check_names(inputs, info.inputs);
  check_batches(inputs, info.size, batch);
}

std::string check_data_fits(const Model& model, const Loss& loss, const std::string& output,
                            const Dataset& dataset, std::int64_t batch) {
  const DatasetInfo& info = dataset.info();
  const auto type_of = [&](const SampleField& field) {
    std::vector<std::int64_t> dims{std::min(batch, info.size)};
    dims.insert(dims.end(), field.shape.begin(), field.shape.end());
    return ValueType{field.dtype, SymShape(Shape(std::move(dims)))};
  };
  std::vector<ValueType> inputs;
  for (const SampleField& field : info.inputs) inputs.push_back(type_of(field));
  const Model newest = newest_form(model);
  std::vector<ValueType> targets{type_of(info.target)};
  for (const SampleField& field : info.further_targets) targets.push_back(type_of(field));
  std::vector<Value*> wanted = passes::required_inputs(newest.graph());
  const std::vector<Value*> labels =
      inputs_for_targets(newest.graph(), loss, output, inputs.size(), targets.size());
  std::erase_if(
      wanted, [&](const Value* input) { return std::ranges::find(labels, input) != labels.end(); });
  check_inputs_fit(wanted, info, batch);
  const CompiledGraph evaluation =
      compile_graph(newest, {.loss = loss, .output = output},
                    {.kind = StepKind::evaluate, .inputs = inputs, .targets = targets});
  if (!has_class_targets(loss) || info.classes == 0) return evaluation.judged;
  const Shape prediction = evaluation.graph->outputs()[1]->known_shape();
  try {
    check_labels(dataset, prediction[class_axis(loss, prediction)]);
  } catch (const Error& error) {
    throw Error(ErrorKind::io, error.what());  // the data are at fault, not the command
  }
  return evaluation.judged;
}

void say_what_is_judged(const Loss& loss, const std::string& judged) {
  if (judged.empty() || verbosity().quiet) return;
  std::cerr << "graft: the output holds probabilities; " << loss.name << " judges " << judged
            << ", which the model keeps\n";
}

namespace {

std::size_t bytes_of_initializers(const Model& model) {
  std::size_t bytes = 0;
  for (const Value* value : model.graph().initializers()) bytes += value->initializer().bytes();
  return bytes;
}

/// The file beside `path` that takes the data of a model that is too large for one; else empty.
std::string data_file(const Model& model, const std::filesystem::path& path) {
  constexpr std::size_t kMostInOneFile = (std::size_t{1} << 31) - (std::size_t{1} << 26);
  const bool is_large = bytes_of_initializers(model) > kMostInOneFile;
  return is_large ? path.filename().string() + ".data" : std::string();
}

}  // namespace

void make_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    fail(ErrorKind::io, "cannot make folder '", folder.string(), "': ", error.message());
  }
}

void save_model(const Model& model, const std::filesystem::path& path) {
  onnx::save(model, path, {.external_data = data_file(model, path)});
}

void check_writable(const Model& model, const std::filesystem::path& path) {
  const std::string beside = data_file(model, path);
  const AtomicFile probe(path);
  if (beside.empty()) return probe.reserve(bytes_of_initializers(model));
  const auto name = [&](unsigned i) { return path.parent_path() / text(beside, ".probe", i); };
  const NewFile data(name, path.parent_path() / beside);
  data.reserve(bytes_of_initializers(model));
}

}  // namespace graft::cli
