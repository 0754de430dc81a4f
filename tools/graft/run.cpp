#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>

#include "core/passes/pass.h"
#include "core/runtime/session.h"
#include "io/npy.h"
#include "io/onnx.h"
#include "tools/graft/arguments.h"
#include "tools/graft/class_names.h"
#include "tools/graft/data_set.h"
#include "tools/graft/file_notes.h"
#include "tools/graft/format_internal.h"
#include "tools/graft/tensor_files.h"
#include "tools/graft/verb.h"
#include "tools/graft/verbosity.h"
#include "train/gradient_model.h"

namespace graft::cli {
namespace {

struct ModelRunArguments {
  std::string model;
  std::vector<std::string> inputs;
  std::string folder;  // of inputs
  std::vector<std::string> outputs;
  std::string out;
  ComputeArguments compute;
  bool json = false;
};

bool numpy_has(DType dtype) {
  return dtype != DType::bf16 && dtype != DType::string && bits_of(dtype) >= 8 &&
         (dtype < DType::f8e4m3fn || dtype > DType::f8e5m2fnuz) && dtype != DType::f8e8m0;
}

/// Writes .npy, or .pb for element types that NumPy does not have. Returns the file's path.
std::filesystem::path write(const std::filesystem::path& folder, const std::string& stem,
                            const std::string& name, const Tensor& tensor) {
  if (numpy_has(tensor.dtype())) {
    npy::save(folder / (stem + ".npy"), tensor);
    return folder / (stem + ".npy");
  }
  onnx::save_tensor(folder / (stem + ".pb"), tensor, name);
  return folder / (stem + ".pb");
}

/// A file a tensor: the items of a sequence are numbered, a map has keys and values.
class Writer {
 public:
  /// `names`: of classes; those that rank first are said of scores that have one a class.
  Writer(const ModelRunArguments& arguments, std::vector<std::string> names)
      : arguments_(arguments), names_(std::move(names)) {}

  void write_datum(const std::string& name, const std::string& stem, const Datum& datum) {
    if (datum.is_sequence()) {
      const std::vector<Datum>& items = datum.sequence().items;
      for (std::size_t i = 0; i < items.size(); ++i) {
        const std::string number = std::to_string(i);
        write_datum(text(name, "[", number, "]"), text(stem, "_", number), items[i]);
      }
    } else if (datum.is_dictionary()) {
      write_datum(name + ".keys", stem + "_keys", datum.dictionary().keys);
      write_datum(name + ".values", stem + "_values", datum.dictionary().values);
    } else if (datum.is_tensor()) {
      std::string free = stem;
      for (int i = 1; !stems_.insert(free).second; ++i) free = text(stem, "_", i);
      const std::string path = write(arguments_.out, free, name, datum.tensor()).string();
      return report(name, describe(datum), path, best_of(datum.tensor()));
    }
    report(name, describe(datum), "", {});
  }

 private:
  /// The name of the best class of each row; none where these are no scores of such classes.
  std::vector<std::string> best_of(const Tensor& scores) const {
    const auto classes = static_cast<std::int64_t>(names_.size());
    const bool are_scores = classes > 0 && is_float(scores.dtype()) && scores.rank() == 2 &&
                            scores.shape()[1] == classes;
    if (!are_scores) return {};
    const std::vector<double> all = to_double(scores);
    std::vector<std::string> best;
    for (auto row = all.begin(); row != all.end(); row += classes) {
      const bool are_finite =
          std::all_of(row, row + classes, [](double s) { return std::isfinite(s); });
      const auto first = static_cast<std::size_t>(std::max_element(row, row + classes) - row);
      best.push_back(are_finite ? names_[first] : "not finite");
    }
    return best;
  }

  void report(const std::string& name, const std::string& type, const std::string& path,
              const std::vector<std::string>& best) const {
    if (arguments_.json) {
      nlohmann::ordered_json line{{"name", name}, {"type", type}, {"file", path}};
      if (!best.empty()) line["best"] = best;
      return print_json(line);
    }
    std::cout << name << ' ' << type << (path.empty() ? "" : " ") << path << '\n';
    constexpr std::size_t kShown = 10;
    for (std::size_t i = 0; i < std::min(best.size(), kShown); ++i) {
      std::cout << "  " << i << "  " << best[i] << '\n';
    }
    if (best.size() > kShown) std::cout << "  and " << best.size() - kShown << " more\n";
  }

  const ModelRunArguments& arguments_;
  std::vector<std::string> names_;
  std::set<std::string> stems_{};  // of the files that are written
};

/// A model, and what its required inputs get, by name.
struct Ready {
  Model model;
  std::map<std::string, Datum> inputs;
};

/// A folder may hold data of inputs with default values, too: these change then.
Ready make_ready(const ModelRunArguments& arguments, const Model& model) {
  Ready ready{model.clone(), {}};
  if (arguments.folder.empty()) {
    ready.inputs = load_named_data(arguments.inputs, model.graph());
    return ready;
  }
  const std::vector<Datum> fed = feed(ready.model, load_inputs(arguments.folder, model));
  const std::vector<Value*> required = passes::required_inputs(ready.model.graph());
  for (std::size_t i = 0; i < fed.size(); ++i) ready.inputs[required[i]->name()] = fed[i];
  return ready;
}

/// In the model's order, as far as they are given: the session says what is missing.
std::vector<Datum> in_order(const Ready& ready) {
  std::vector<Datum> ordered;
  for (const Value* input : passes::required_inputs(ready.model.graph())) {
    const auto at = ready.inputs.find(input->name());
    if (at != ready.inputs.end()) ordered.push_back(at->second);
  }
  return ordered;
}

/// Files may hold inputs that are normalized already, so nothing is done to them here.
void say_what_inputs_are(const Model& model) {
  const std::string noted = note_of(model, kNormalizeNote);
  if (noted.empty() || noted == "none" || verbosity().quiet) return;
  std::cerr << "graft: inputs are taken as they are; the file was trained on inputs normalized by "
            << noted << std::endl;
}

ExitCode run_model(const ModelRunArguments& arguments) {
  apply(arguments.compute);
  const Model model = onnx::load(arguments.model);
  make_folder(arguments.out);
  const SessionOptions options{.device = &device(arguments.compute.device),
                               .fallback = arguments.compute.fallback,
                               .outputs = arguments.outputs};
  const Ready ready = make_ready(arguments, model);
  Session session(model_with_gradients(ready.model, in_order(ready)), options);
  const std::vector<Datum> outputs = session.run_data(ready.inputs);
  say_what_inputs_are(model);
  Writer writer(arguments, class_names_of(model));
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::string& name = session.output_names()[i];
    writer.write_datum(name, file_stem(name), outputs[i]);
  }
  return ok;
}

}  // namespace

Run add_run(CLI::App& app) {
  const auto arguments = std::make_shared<ModelRunArguments>();
  app.add_option("MODEL", arguments->model, "an ONNX file")->required();
  app.add_option("--input", arguments->inputs, "a .npy or .pb file; once an input")
      ->type_name("NAME=FILE");
  app.add_option("--inputs", arguments->folder,
                 "a folder of input_0.pb, ... or NAME.npy, or of test_data_set_*")
      ->type_name("DIR")
      ->excludes("--input");
  app.add_option(
         "--output", arguments->outputs,
         "a value anywhere in the graph, or a node, to write in place of the model's outputs; "
         "once a value")
      ->type_name("NAME");
  app.add_option("--out,-o", arguments->out, "the folder that gets a file an output")
      ->required()
      ->type_name("DIR");
  add_arguments(app, arguments->compute);
  app.add_flag("--json", arguments->json, "print a JSON line an output");
  return [arguments] { return run_model(*arguments); };
}

}  // namespace graft::cli
