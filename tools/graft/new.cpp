#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>

#include "core/layers/nets.h"
#include "io/onnx.h"
#include "tools/graft/arguments.h"
#include "tools/graft/format_internal.h"
#include "tools/graft/options.h"
#include "tools/graft/verb.h"

namespace graft::cli {
namespace {

struct NewArguments {
  std::string net;
  std::string input = "1x28x28";
  std::int64_t classes = 10;
  std::uint64_t seed = 0;
  std::string out;
};

ExitCode make(const NewArguments& arguments) {
  const Model model = make_net(arguments.net, parse_shape(arguments.input, "--input"),
                               arguments.classes, arguments.seed);
  save_model(model, arguments.out);
  std::int64_t numbers = 0;
  for (const Value* initializer : model.graph().initializers()) {
    numbers += initializer->initializer().size();
  }
  std::cout << "wrote " << arguments.out << ": " << arguments.net << ", "
            << with_commas(static_cast<std::int64_t>(model.graph().node_count())) << " nodes, "
            << with_commas(numbers) << " numbers\n";
  return ok;
}

}  // namespace

Run add_new(CLI::App& app) {
  const auto arguments = std::make_shared<NewArguments>();
  constexpr std::size_t kColumn = 13;
  std::string list = "nets:";
  std::vector<std::string> names;
  for (const Net& net : nets()) {
    names.emplace_back(net.name);
    const std::string space(kColumn - std::min(kColumn - 1, net.name.size()), ' ');
    list += text("\n  ", net.name, space, net.description);
  }
  app.add_option("NAME", arguments->net, "a net, see below")->required()->type_name(one_of(names));
  app.footer(list);
  app.add_option("--input", arguments->input, "shape of a sample, without the batch")
      ->type_name("SHAPE")
      ->capture_default_str();
  app.add_option("--classes", arguments->classes, "numbers that the net puts out")
      ->capture_default_str();
  add_seed_argument(app, arguments->seed, "of the first weights");
  app.add_option("--out,-o", arguments->out, "the ONNX file to write")
      ->required()
      ->type_name("FILE");
  return [arguments] { return make(*arguments); };
}

}  // namespace graft::cli
