#include "tools/graft/edit_repair.h"

#include <CLI/CLI.hpp>
#include <iostream>

#include "core/graph/frozen.h"
#include "core/layers/lora.h"
#include "core/layers/repair.h"
#include "tools/graft/arguments.h"
#include "tools/graft/file_notes.h"
#include "tools/graft/numbers.h"
#include "tools/graft/pairs.h"
#include "train/copies.h"
#include "train/lora_file.h"
#include "train/trainable.h"
#include "train/unfuse_norms.h"

namespace graft::cli {
namespace {

void strip(Model& model) {
  const std::vector<std::string> went = edit::strip_probabilities(model);
  if (went.empty()) fail(ErrorKind::argument, "--strip-probabilities: no output ends in them");
  for (const std::string& label : went) std::cout << "cut off " << label << '\n';
}

void tie(Model& model) {
  const std::vector<Tie> ties = tie_copies(model);
  if (ties.empty()) fail(ErrorKind::argument, "--tie: no matrix is written twice");
  for (const Tie& tie : ties) {
    std::cout << '\'' << tie.follower << "' is " << (tie.transposed ? "the transpose of " : "")
              << '\'' << tie.leader << "' from now on\n";
  }
}

/// Samples of a data set in batches that the model takes.
DataLoader calibration_data(const Model& model, const RepairArguments& arguments) {
  constexpr std::int64_t kSamples = 1024;
  constexpr std::int64_t kBatch = 32;
  if (arguments.calibrate.empty()) {
    fail(ErrorKind::argument, "--unfuse-bn: --calibrate is missing, the data to calibrate with");
  }
  DataArguments data{
      .spec = arguments.calibrate, .limit = kSamples, .normalize = arguments.normalize};
  complete_data(model, data);
  const auto samples = open(data, data.spec, Split::train, wanted_types(model, ""));
  std::optional<std::int64_t> fixed;
  for (const Value* input : model.graph().inputs()) {
    const auto& shape = input->shape();
    if (input->is_initializer() || !shape || shape->rank() == 0 || !(*shape)[0].is_known())
      continue;
    fixed = (*shape)[0].value();
  }
  return DataLoader(samples, {.batch = fixed.value_or(kBatch),
                              .drop_last = fixed.has_value(),
                              .transforms = normalization(data)});
}

void unfuse(Model& model, const RepairArguments& arguments) {
  DataLoader data = calibration_data(model, arguments);
  const UnfusedNorms done = unfuse_norms(model, *arguments.unfuse, data);
  std::cout << "a BatchNormalization behind " << done.layers.size()
            << " layers: " << some_of(done.layers) << '\n';
  for (const std::string& why : done.left_out) std::cout << "none behind " << why << '\n';
}

void set_norms(Model& model, const std::string& given) {
  const auto [pattern, name] = split_pair("--bn", given, "RE=POLICY");
  const std::vector<std::string> norms = edit::set_norms(model, pattern, edit::norm_policy(name));
  std::cout << norms.size() << " BatchNormalizations are '" << name << "': " << some_of(norms)
            << '\n';
}

void add_dropout(Model& model, const std::string& given) {
  const auto [pattern, share] = split_pair("--dropout", given, "RE=SHARE");
  const std::optional<float> ratio = number_in<float>(share);
  if (!ratio) fail(ErrorKind::argument, "--dropout ", given, ": '", share, "' is no number");
  const std::vector<std::string> values = edit::insert_dropout(model, pattern, *ratio);
  std::cout << "dropout of " << *ratio << " behind " << values.size()
            << " nodes: " << some_of(values) << '\n';
}

void merge(Model& model) {
  const std::vector<std::string> layers = edit::merge_lora(model);
  std::cout << "merged the adapters of " << layers.size() << " layers: " << some_of(layers) << '\n';
}

void add_adapters(Model& model, const RepairArguments& arguments, std::uint64_t seed) {
  for (const std::string& pattern : arguments.lora) {
    const edit::LoraReport report = edit::add_lora(
        model,
        {.pattern = pattern, .rank = arguments.rank, .alpha = arguments.alpha, .seed = seed});
    std::cout << "adapters of rank " << arguments.rank << " for " << report.adapted.size()
              << " layers: " << some_of(report.adapted) << '\n';
    for (const std::string& why : report.left_out)
      std::cout << "without an adapter: " << why << '\n';
  }
}

void apply_adapters(Model& model, const RepairArguments& arguments) {
  const std::vector<edit::LoraAdapter> adapters = load_lora(arguments.apply_lora, arguments.alpha);
  edit::apply_lora(model, adapters);
  std::cout << "applied the adapters of " << adapters.size() << " layers\n";
}

}  // namespace

bool is_asked(const RepairArguments& a) {
  return a.strip || a.tie || a.unfuse ||
         !(a.norms.empty() && a.dropout.empty() && a.freeze.empty() && a.unfreeze.empty() &&
           a.lora.empty() && a.apply_lora.empty() && a.save_lora.empty() && !a.merge_lora);
}

void repair(Model& model, const RepairArguments& arguments, std::uint64_t seed) {
  if (!arguments.norms.empty() || !arguments.freeze.empty()) separate_parameters(model);
  if (arguments.strip) strip(model);
  if (arguments.tie) tie(model);
  if (arguments.unfuse) unfuse(model, arguments);
  for (const std::string& given : arguments.norms) set_norms(model, given);
  for (const std::string& given : arguments.dropout) add_dropout(model, given);
  if (arguments.merge_lora) merge(model);
  if (!arguments.apply_lora.empty()) apply_adapters(model, arguments);
  add_adapters(model, arguments, seed);
  for (const std::string& pattern : arguments.freeze) {
    const std::size_t count = edit::freeze(model, pattern);  // throws before anything is printed
    std::cout << "froze " << count << " weights\n";
  }
  for (const std::string& pattern : arguments.unfreeze) {
    const std::size_t count = edit::unfreeze(model, pattern);
    std::cout << "unfroze " << count << " weights\n";
  }
}

void write_beside(const Model& model, const RepairArguments& arguments) {
  if (arguments.save_lora.empty()) return;
  save_lora(model, arguments.save_lora);
  std::cout << "wrote " << arguments.save_lora << ": the adapters\n";
}

void add_arguments(CLI::App& app, RepairArguments& arguments) {
  app.add_flag("--strip-probabilities", arguments.strip,
               "then let outputs that end in Softmax or Sigmoid give logits");
  app.add_flag("--tie", arguments.tie, "then make one parameter of a matrix that is written twice");
  app.add_option("--unfuse-bn", arguments.unfuse,
                 "then put back the BatchNormalizations that an export folded, behind the layers "
                 "of these names, by default all Convs that look like it")
      ->expected(0, 1)
      ->type_name("[RE]");
  app.add_option("--calibrate", arguments.calibrate, "the data that give their statistics")
      ->type_name("SPEC");
  app.add_option("--normalize", arguments.normalize,
                 "how those data are normalized (default: as the file says)")
      ->type_name("none|data|MEAN:DEVIATION");
  app.add_option("--bn", arguments.norms,
                 "then say how BatchNormalizations train: train, fixed (statistics stay) or frozen")
      ->type_name("RE=POLICY");
  app.add_option("--dropout", arguments.dropout,
                 "then put a Dropout behind the nodes or values of that name")
      ->type_name("RE=SHARE");
  app.add_flag("--merge-lora", arguments.merge_lora, "then make adapters part of their weights");
  app.add_option("--apply-lora", arguments.apply_lora,
                 "then add the adapters of a safetensors file, PEFT's too")
      ->type_name("FILE");
  app.add_option("--lora", arguments.lora,
                 "then give the layers of that name, weight or node low-rank adapters, and freeze "
                 "the rest")
      ->type_name("RE");
  app.add_option("--rank", arguments.rank, "of new adapters")->capture_default_str();
  app.add_option("--alpha", arguments.alpha,
                 "adapters are scaled by alpha / rank (default: the rank, or what the file says)");
  app.add_option("--freeze", arguments.freeze,
                 "then keep the weights of these names from training by default, in the file")
      ->type_name("RE");
  app.add_option("--unfreeze", arguments.unfreeze, "then let those that the file froze train again")
      ->type_name("RE");
  app.add_option("--save-lora", arguments.save_lora, "write the adapters alone, as safetensors")
      ->type_name("FILE");
}

}  // namespace graft::cli
