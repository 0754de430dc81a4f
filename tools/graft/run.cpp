#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "core/runtime/session.h"
#include "io/npy.h"
#include "io/onnx.h"
#include "tools/graft/arguments.h"
#include "tools/graft/format_internal.h"
#include "tools/graft/tensor_files.h"
#include "tools/graft/verb.h"

namespace graft::cli {
namespace {

struct Arguments {
  std::string model;
  std::vector<std::string> inputs;
  std::string out;
  ComputeArguments compute;
  bool json = false;
};

/// Names in models may hold anything, "../" too: what is no plain character becomes '_'.
std::string file_stem(const std::string& name) {
  std::string stem = name;
  std::ranges::replace_if(
      stem,
      [](char c) {
        const bool is_plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                              (c >= 'A' && c <= 'Z') || c == '_' || c == '-' || c == '.';
        return !is_plain;
      },
      '_');
  return stem.empty() || stem.front() == '.' ? "_" + stem : stem;
}

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

ExitCode run(const Arguments& arguments) {
  apply(arguments.compute);
  const Model model = onnx::load(arguments.model);
  std::error_code error;
  std::filesystem::create_directories(arguments.out, error);
  if (error) {
    fail(ErrorKind::io, arguments.out, ": cannot make the folder: ", error.message());
  }
  Session session(model, {.device = &device(arguments.compute.device)});
  const std::vector<Tensor> outputs = session.run(load_named_tensors(arguments.inputs));
  std::vector<std::string> stems;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::string& name = session.output_names()[i];
    std::string stem = file_stem(name);
    if (std::ranges::find(stems, stem) != stems.end()) stem += "_" + std::to_string(i);
    stems.push_back(stem);
    const std::string path = write(arguments.out, stem, name, outputs[i]).string();
    if (arguments.json) {
      print_json({{"name", name}, {"type", describe(outputs[i])}, {"file", path}});
    } else {
      std::cout << name << ' ' << describe(outputs[i]) << ' ' << path << '\n';
    }
  }
  return ok;
}

}  // namespace

Run add_run(CLI::App& app) {
  const auto arguments = std::make_shared<Arguments>();
  app.add_option("MODEL", arguments->model, "an ONNX file")->required();
  app.add_option("--input", arguments->inputs, "NAME=FILE, a .npy or .pb file; once an input");
  app.add_option("--out", arguments->out, "the folder that gets a file an output")->required();
  add_arguments(app, arguments->compute);
  app.add_flag("--json", arguments->json, "print a JSON line an output");
  return [arguments] { return run(*arguments); };
}

}  // namespace graft::cli
