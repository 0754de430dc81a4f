#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <sstream>

#include "core/layers/batch.h"
#include "core/layers/change_opset.h"
#include "core/layers/fix_input.h"
#include "core/layers/output_types.h"
#include "core/layers/parse.h"
#include "io/onnx.h"
#include "tools/graft/arguments.h"
#include "tools/graft/edit_repair.h"
#include "tools/graft/edit_surgery.h"
#include "tools/graft/format_internal.h"
#include "tools/graft/numbers.h"
#include "tools/graft/pairs.h"
#include "tools/graft/verb.h"
#include "train/change_precision.h"
#include "train/store_quantized.h"
#include "train/trainable.h"

namespace graft::cli {
namespace {

struct EditArguments {
  std::string model;
  SurgeryArguments surgery;
  std::string batch;
  std::optional<std::int64_t> opset;
  bool store_quantized = false;
  std::string precision;
  std::vector<std::string> set;
  RepairArguments repair;
  std::string out;
};

/// Nothing for "any".
std::optional<std::int64_t> parse_batch(const std::string& text) {
  if (text == "any") return std::nullopt;
  const std::optional<std::int64_t> batch = number_in<std::int64_t>(text);
  if (!batch || *batch < 1) {
    fail(ErrorKind::argument, "--batch '", text, "' is neither a number above 0 nor 'any'");
  }
  return batch;
}

/// "16000" or "1,0.5" as what the input takes.
Tensor parse_value(const Value& input, const std::string& list) {
  const DType type = input.dtype();
  if (!is_float(type) && !is_integer(type) && type != DType::boolean) {
    fail(ErrorKind::type, "--set: input '", input.name(), "' is ", input.type(),
         "; only numbers can be set");
  }
  const std::optional<std::vector<double>> numbers = numbers_in<double>(list, ',');
  if (!numbers) {
    fail(ErrorKind::argument, "--set ", input.name(), "=", list, ": wanted numbers joined by ','");
  }
  const auto count = static_cast<std::int64_t>(numbers->size());
  const std::optional<Shape> shape = input.shape() ? input.shape()->known() : std::nullopt;
  const bool fits = shape && shape->size() == count;
  const bool fills = shape && shape->size() > 1 && count == 1;
  const Tensor exact = fills ? Tensor::full(DType::f64, *shape, numbers->front())
                             : Tensor::from(fits ? *shape : Shape{count}, *numbers);
  const Tensor value = exact.cast(type);
  if (is_integer(type) && to_double(value) != to_double(exact)) {
    fail(ErrorKind::argument, "--set ", input.name(), "=", list, ": does not fit ", type);
  }
  return value;
}

void set_inputs(Model& model, const std::vector<std::string>& assignments) {
  for (const std::string& assignment : assignments) {
    const auto [name, list] = split_pair("--set", assignment, "NAME=VALUE");
    const auto& inputs = model.graph().inputs();
    const auto input = std::ranges::find(inputs, name, &Value::name);
    // Of a name that there is not, fix_input says which there are.
    const Tensor value = input == inputs.end() ? Tensor::scalar(0.0F) : parse_value(**input, list);
    edit::fix_input(model, name, value);
  }
}

void store_quantized(Model& model) {
  const std::vector<std::string> names = edit::store_quantized(model);
  if (names.empty()) {
    fail(ErrorKind::argument, "--store-quantized: no QuantizeLinear reads a weight");
  }
  std::cout << names.size() << " weights are integers: " << some_of(names) << '\n';
}

void change_precision(Model& model, const std::string& name) {
  const edit::PrecisionReport report =
      edit::change_precision(model, name == "f16" ? DType::f16 : DType::bf16);
  std::cout << report.weights << " weights are " << name << '\n';
  if (report.clamped != 0) {
    std::cout << report.clamped << " numbers beyond " << name << " are its largest now\n";
  }
  for (const std::string& why : report.stay) std::cout << "f32 as before: " << why << '\n';
}

/// Throws if an option is given that says how others do their work, and none of these is.
void check_helpers(const CLI::App& app) {
  using Names = std::vector<std::string>;
  static const std::vector<std::pair<std::string, Names>> helpers{
      {"--output", {"--replace-head"}},
      {"--calibrate", {"--unfuse-bn"}},
      {"--normalize", {"--unfuse-bn"}},
      {"--rank", {"--lora"}},
      {"--alpha", {"--lora", "--apply-lora"}},
      {"--init", {"--replace-head", "--insert-after", "--insert-before", "--append"}},
      {"--seed", {"--replace-head", "--insert-after", "--insert-before", "--append", "--lora"}}};
  for (const auto& [helper, options] : helpers) {
    const bool is_used = std::ranges::any_of(
        options, [&](const std::string& option) { return app.count(option) != 0; });
    if (app.count(helper) == 0 || is_used) continue;
    fail(ErrorKind::argument, helper, " goes with ", joined(options),
         "; none is given, so leave it out");
  }
}

ExitCode edit_model(const EditArguments& arguments) {
  if (is_empty(arguments.surgery) && arguments.batch.empty() && arguments.set.empty() &&
      !arguments.opset && !arguments.store_quantized && arguments.precision.empty() &&
      !is_asked(arguments.repair)) {
    fail(
        ErrorKind::argument,
        "edit: nothing to do; give --set, --truncate, --replace-head, --append, --batch or another "
        "of `graft edit --help`");
  }
  if (arguments.out.empty() && arguments.repair.save_lora.empty()) {
    fail(ErrorKind::argument, "edit: --out is missing, the file to write");
  }
  Model model = onnx::load(arguments.model);
  set_inputs(model, arguments.set);
  cut(model, arguments.surgery);
  repair(model, arguments.repair, arguments.surgery.seed);
  operate(model, arguments.surgery);
  if (!arguments.batch.empty()) edit::change_batch(model, parse_batch(arguments.batch));
  if (arguments.opset) edit::change_opset(model, *arguments.opset);
  if (arguments.store_quantized) store_quantized(model);
  if (!arguments.precision.empty()) change_precision(model, arguments.precision);
  write_beside(model, arguments.repair);
  if (arguments.out.empty()) return ok;
  edit::complete_output_types(model);
  save_model(model, arguments.out);
  std::cout << "wrote " << arguments.out << ": " << model.graph().node_count() << " nodes; outputs";
  for (const Value* output : model.graph().outputs()) {
    std::cout << ' ' << output->name() << ' ' << output->type();
  }
  std::cout << '\n';
  for (const Value* output : model.graph().outputs()) {
    if (output->shape() || output->type().is_container) continue;
    std::cerr << "graft: the rank of output '" << output->name()
              << "' is not known; ONNX's checker wants it in the file\n";
  }
  return ok;
}

}  // namespace

Run add_edit(CLI::App& app) {
  const auto arguments = std::make_shared<EditArguments>();
  app.add_option("MODEL", arguments->model, "an ONNX file")->required();
  app.add_option("--set", arguments->set,
                 "make an input a constant, which one number fills, and take the branches "
                 "that it chooses")
      ->type_name("NAME=VALUE");
  add_cut_arguments(app, arguments->surgery);
  add_arguments(app, arguments->repair);
  add_operate_arguments(app, arguments->surgery);
  app.add_option("--batch", arguments->batch, "then set the batch to a number or to 'any'")
      ->type_name("N");
  app.add_option("--opset", arguments->opset,
                 "then write the nodes in the forms of another version of ONNX's ops, from 13 on")
      ->type_name("N");
  app.add_flag("--store-quantized", arguments->store_quantized,
               "then store weights behind a QuantizeLinear as the integers that it makes of them");
  app.add_option("--precision", arguments->precision,
                 "at last let the model compute in half precision, with inputs and outputs in f32")
      ->check(CLI::IsMember({"f16", "bf16"}))
      ->type_name("f16|bf16");
  app.add_option("--out,-o", arguments->out, "the ONNX file to write")->type_name("FILE");
  std::string usages = "layers (each also takes name=NAME; those with weights init=INIT):";
  for (const std::string& usage : layer_usages()) usages += "\n  " + usage;
  app.footer(usages + "\n" + std::string(init_usage()));
  return [&app, arguments] {
    check_helpers(app);
    return edit_model(*arguments);
  };
}

}  // namespace graft::cli
