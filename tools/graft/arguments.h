#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "autograd/loss.h"
#include "core/device/device.h"
#include "core/graph/model.h"
#include "data/dataset.h"
#include "data/transforms.h"
#include "train/data_spec.h"

namespace CLI {
class App;
}

// Arguments that several verbs share, and what is made from them.
namespace graft::cli {

struct ComputeArguments {
  std::string device = "auto";
  Fallback fallback = Fallback::none;
  /// 0: all cores.
  int threads = 0;
};
void add_arguments(CLI::App& app, ComputeArguments& arguments);
/// Sets the threads. Throws Error{device}, listing the devices, if there is none of that name.
void apply(const ComputeArguments& arguments);

/// Adds --seed: a whole number from 0 to 2^64 - 1.
void add_seed_argument(CLI::App& app, std::uint64_t& seed, const char* help);

/// "1x28x28" as a shape. Throws Error{argument}, naming the option, for anything else.
Shape parse_shape(const std::string& text, std::string_view option);

struct DataArguments {
  std::string spec;
  std::int64_t batch = 64;
  /// 0: all samples.
  std::int64_t limit = 0;
  std::string normalize;
  /// "HxW"; empty or "none": images are as large as the data have them.
  std::string resize;
};
void add_arguments(CLI::App& app, DataArguments& arguments);
/// Adds --split: "train" or "test".
void add_split_argument(CLI::App& app, std::string& split);
/// Those of the model's inputs and of the output that is judged, as the file says.
WantedTypes wanted_types(const Model& model, const std::string& output);
std::shared_ptr<Dataset> open(const DataArguments& arguments, const std::string& spec, Split split,
                              const WantedTypes& wanted);
/// What --resize asks for, height and width. Throws Error{argument} for what is no size.
std::optional<Shape> image_size(const DataArguments& arguments);
/// What --normalize asks for: none or one.
std::vector<Transform> normalization(const DataArguments& arguments);

struct LossArguments {
  std::string name = "auto";
  float label_smoothing = 0.0F;
  /// The output that is judged; empty: the first.
  std::string output;
};
void add_arguments(CLI::App& app, LossArguments& arguments);
/// Adds --metrics.
void add_metrics_argument(CLI::App& app, std::vector<std::string>& names);
/// The types as above, and what the loss takes a csv file's targets for; "auto": for numbers if the
/// output has one column, else for what they look like.
WantedTypes wanted_types(const Model& model, const LossArguments& arguments);
/// "auto": nll behind a LogSoftmax or else cross_entropy for class indices, mse for numbers.
Loss choose_loss(const LossArguments& arguments, const Model& model, const Dataset& dataset);

/// Where no data tell what targets are, "auto" is cross_entropy.
Loss choose_loss(const LossArguments& arguments);

/// Throws unless the data have an input for each of the model's, in its order, and batches of the
/// size that the model fixes, if it does: Error{shape} or Error{argument}.
void check_inputs_fit(const std::vector<Value*>& inputs, const DatasetInfo& info,
                      std::int64_t batch);

/// Throws unless batches of these samples go through the model and its loss: Error{shape} or
/// Error{type}, Error{io} for labels that the model has no class for, Error{unsupported} for ops
/// that Graft does not know. Returns what the loss judges in place of the output, if anything
/// (CompiledGraph::judged).
std::string check_data_fits(const Model& model, const Loss& loss, const std::string& output,
                            const Dataset& dataset, std::int64_t batch);
/// Says so on stderr, if there is something to say.
void say_what_is_judged(const Loss& loss, const std::string& judged);

/// Makes it and those above it, if need be. Throws Error{io}.
void make_folder(const std::filesystem::path& folder);

/// Throws as onnx::save does. What is too large for one file has its data beside it, in PATH.data.
void save_model(const Model& model, const std::filesystem::path& path);

/// Throws Error{io} if `save_model` could not write the model there: before work is done whose
/// result would be lost.
void check_writable(const Model& model, const std::filesystem::path& path);

}  // namespace graft::cli
