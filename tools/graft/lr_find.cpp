#include <CLI/CLI.hpp>
#include <iostream>
#include <nlohmann/json.hpp>

#include "io/onnx.h"
#include "tools/graft/defaults.h"
#include "tools/graft/file_notes.h"
#include "tools/graft/format_internal.h"
#include "tools/graft/train_arguments.h"
#include "tools/graft/verb.h"
#include "train/find_rate.h"

namespace graft::cli {

RateFound find_rate_for(const TrainArguments& arguments, const Loss& loss, Model& model,
                        DataLoader& loader) {
  TrainArguments searching = arguments;
  searching.optimizer.finds_lr = false;
  searching.schedule = {.name = "constant"};
  searching.stages.unfreeze.clear();  // all as it is in the end
  searching.ema = 0.0F;
  searching.accumulate = 1;
  Trainer trainer(model, make_options(searching, loss, loader.dataset().size()));
  return find_rate(trainer, loader);
}

namespace {

ExitCode find(TrainArguments arguments) {
  apply(arguments.compute);
  Model model = onnx::load(arguments.model);
  complete_data(model, arguments.data);
  const std::shared_ptr<Dataset> dataset =
      open(arguments.data, arguments.data.spec, Split::train, wanted_types(model, arguments.loss));
  const Loss loss = choose_loss(arguments.loss, model, *dataset);
  check_data_fits(model, loss, arguments.loss.output, *dataset, arguments.data.batch);
  choose_defaults(model, total_updates(arguments, dataset->size()), arguments);
  DataLoader loader(dataset, {.batch = arguments.data.batch,
                              .shuffle = true,
                              .seed = arguments.seed,
                              .transforms = normalization(arguments.data)});
  const RateFound found = find_rate_for(arguments, loss, model, loader);
  if (arguments.json) {
    nlohmann::ordered_json line{{"rate", found.rate}, {"optimizer", arguments.optimizer.name}};
    for (const auto& [rate, value] : found.tried) line["tried"].push_back({rate, value});
    print_json(line);
    return ok;
  }
  std::cout << "      rate      loss\n";
  constexpr std::size_t kShown = 5;  // every fifth
  for (std::size_t i = 0; i < found.tried.size(); i += kShown) {
    std::string rate = text(found.tried[i].first);
    rate.insert(0, rate.size() < 10 ? 10 - rate.size() : 0, ' ');
    std::cout << rate << "  " << fixed(found.tried[i].second, 4) << '\n';
  }
  std::cout << "--lr " << found.rate << " for " << arguments.optimizer.name
            << ": a tenth of where the loss was least\n";
  return ok;
}

}  // namespace

Run add_lr_find(CLI::App& app) {
  const auto arguments = std::make_shared<TrainArguments>();
  app.add_option("MODEL", arguments->model, "an ONNX file")->required();
  add_arguments(app, arguments->data);
  add_arguments(app, arguments->loss);
  add_arguments(app, arguments->optimizer);
  add_seed_argument(app, arguments->seed, "of the order of samples and Dropout");
  add_arguments(app, arguments->compute);
  app.add_flag("--json", arguments->json, "print a JSON line");
  return [arguments] { return find(*arguments); };
}

}  // namespace graft::cli
