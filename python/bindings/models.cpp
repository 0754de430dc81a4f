#include <graft/edit.h>
#include <graft/layers.h>
#include <graft/onnx.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "python/bindings/arrays.h"
#include "python/bindings/bindings.h"
#include "python/bindings/held_model.h"
#include "python/bindings/layers.h"

namespace graft::python {
namespace {

using Path = std::filesystem::path;

/// A value's name and type; dims are numbers, names, or None where nothing is known.
struct ValueInfo {
  std::string name;
  ValueType type;
};

/// A node as `Model.summary` shows it.
struct NodeInfo {
  std::string op;
  std::string name;
  std::vector<ValueInfo> outputs;
  /// The initializers among its inputs.
  std::vector<std::string> initializers;
};

ValueInfo info_of(const Value& value) {
  return {value.name(), value.type()};
}

nb::object dims_of(const ValueInfo& info) {
  if (!info.type.shape) return nb::none();
  nb::list dims;
  for (const Dim& dim : *info.type.shape) {
    if (dim.is_known()) {
      dims.append(dim.value());
    } else if (!dim.symbol().empty()) {
      dims.append(dim.symbol());
    } else {
      dims.append(nb::none());
    }
  }
  return nb::tuple(dims);
}

std::vector<ValueInfo> inputs_of(const Model& model) {
  std::vector<ValueInfo> found;
  for (const Value* value : model.graph().inputs()) {
    if (!value->is_initializer()) found.push_back(info_of(*value));
  }
  return found;
}

std::vector<ValueInfo> outputs_of(const Model& model) {
  std::vector<ValueInfo> found;
  for (const Value* value : model.graph().outputs()) found.push_back(info_of(*value));
  return found;
}

/// Float initializers: what may train, and what moves with it.
std::vector<std::string> weight_names(const Model& model) {
  std::vector<std::string> names;
  for (const Value* value : model.graph().initializers()) {
    if (is_float(value->dtype())) names.push_back(value->name());
  }
  return names;
}

const Tensor& initializer(const Model& model, const std::string& name) {
  const Value* const value = model.graph().find(name);
  if (value == nullptr || !value->is_initializer()) {
    fail(ErrorKind::argument, "the model has no initializer '", name, "'");
  }
  return value->initializer();
}

std::vector<NodeInfo> nodes_of(const Model& model) {
  const std::map<std::string, ValueType> types = edit::value_types(model);
  std::vector<NodeInfo> found;
  for (const auto& node : model.graph().nodes()) {
    NodeInfo info{.op = node->op_type(), .name = node->name(), .outputs = {}, .initializers = {}};
    for (int i = 0; i < node->output_count(); ++i) {
      const Value* const output = node->output(i);
      if (output != nullptr) info.outputs.push_back({output->name(), types.at(output->name())});
    }
    for (const Value* input : node->inputs()) {
      if (input != nullptr && input->is_initializer()) info.initializers.push_back(input->name());
    }
    found.push_back(std::move(info));
  }
  return found;
}

std::unique_ptr<HeldModel> hold(Model model) {
  return std::make_unique<HeldModel>(std::move(model));
}

std::unique_ptr<HeldModel> copy(const Model& model) {
  Model copied = model.clone();
  for (Value* value : copied.graph().initializers()) {
    value->set_initializer(value->initializer().clone());
  }
  return hold(std::move(copied));
}

/// What `look` sees of the model, for Python.
template <class Look>
auto looking(Look look) {
  return [look](HeldModel& held) { return held.alone(look); };
}

void save(HeldModel& held, const Path& path, const std::string& external_data) {
  held.alone(
      [&](const Model& model) { onnx::save(model, path, {.external_data = external_data}); });
}

nb::bytes to_bytes(HeldModel& held) {
  const std::string bytes = held.alone([](const Model& model) { return onnx::serialize(model); });
  return nb::bytes(bytes.data(), bytes.size());
}

nb::object initializer_array(HeldModel& held, const std::string& name) {
  const Tensor tensor = held.alone([&](const Model& model) { return initializer(model, name); });
  return to_array(tensor);
}

void set_initializer(HeldModel& held, const std::string& name, nb::handle array) {
  const Tensor old = held.alone([&](const Model& model) { return initializer(model, name); });
  const Tensor fresh = to_tensor(array, "initializer '" + name + "'", old.dtype());
  held.alone([&](const Model&) { old.copy_from(fresh); });
}

void bind_infos(nb::module_& module) {
  nb::class_<ValueInfo>(module, "ValueInfo",
                        "A value of a graph: its name and what is known of it.")
      .def_ro("name", &ValueInfo::name)
      .def_prop_ro(
          "dtype", [](const ValueInfo& info) { return std::string(name(info.type.dtype)); },
          "The element type: \"f32\", \"i64\", ...")
      .def_prop_ro("shape", &dims_of,
                   nb::sig("def shape(self) -> tuple[int | str | None, ...] | None"),
                   "Numbers, names (\"N\") and None for what is not known; None without a rank.")
      .def("__repr__", [](const ValueInfo& info) { return text(info.name, " ", info.type); });
  nb::class_<NodeInfo>(module, "NodeInfo", "A node of a graph.")
      .def_ro("op", &NodeInfo::op)
      .def_ro("name", &NodeInfo::name)
      .def_ro("outputs", &NodeInfo::outputs)
      .def_ro("initializers", &NodeInfo::initializers, "The initializers that the node reads.")
      .def("__repr__", [](const NodeInfo& info) { return text(info.op, " ", info.name); });
}

/// A place as `find_cut` reads it; empty where none is said.
std::string place(const Model& model, std::string_view who, const std::string& where) {
  return where.empty() ? where : edit::find_cut(model, who, where);
}

std::optional<Init> init_of(const std::string& written) {
  return written.empty() ? std::nullopt : std::optional(parse_init(written));
}

void merge(HeldModel& held, HeldModel& other,
           const std::vector<std::pair<std::string, std::string>>& connect,
           const std::string& prefix) {
  const Model next = other.alone([](const Model& m) { return m.clone(); });
  change(held, [&](Model& m) { edit::merge(m, next, {.connect = connect, .prefix = prefix}); });
}

void bind_edits(nb::class_<HeldModel>& model) {
  model
      .def(
          "truncate",
          [](HeldModel& held, const std::string& value) {
            change(held,
                   [&](Model& m) { edit::truncate(m, edit::find_cut(m, "truncate", value)); });
          },
          nb::arg("value"))
      .def(
          "extract",
          [](HeldModel& held, const std::vector<std::string>& inputs,
             const std::vector<std::string>& outputs) {
            change(held, [&](Model& m) { edit::extract(m, inputs, outputs); });
          },
          nb::arg("inputs"), nb::arg("outputs"))
      .def(
          "rename",
          [](HeldModel& held, const std::string& from, const std::string& to) {
            change(held, [&](Model& m) { edit::rename(m, from, to); });
          },
          nb::arg("old"), nb::arg("new"))
      .def(
          "set_batch",
          [](HeldModel& held, std::optional<std::int64_t> batch) {
            change(held, [&](Model& m) { edit::change_batch(m, batch); });
          },
          nb::arg("batch") = nb::none())
      .def(
          "set_opset",
          [](HeldModel& held, std::int64_t version) {
            change(held, [&](Model& m) { edit::change_opset(m, version); });
          },
          nb::arg("version"))
      .def(
          "set_precision",
          [](HeldModel& held, const std::string& type) {
            if (type != "f16" && type != "bf16") {
              fail(ErrorKind::argument, "precision '", type, "': wanted f16 or bf16");
            }
            change(held, [&](Model& m) {
              edit::change_precision(m, type == "f16" ? DType::f16 : DType::bf16);
            });
          },
          nb::arg("type"))
      .def(
          "add_prefix",
          [](HeldModel& held, const std::string& prefix) {
            change(held, [&](Model& m) { edit::add_prefix(m, prefix); });
          },
          nb::arg("prefix"))
      .def("merge", &merge, nb::arg("other"), nb::arg("connect"), nb::arg("prefix"));
}

void bind_layer_edits(nb::class_<HeldModel>& model) {
  model
      .def(
          "append",
          [](HeldModel& held, nb::args layers, const std::string& after, std::uint64_t seed,
             const std::string& init) {
            const std::vector<Layer> added = to_layers(layers);
            change(held, [&](Model& m) {
              edit::append(
                  m, added,
                  {.after = place(m, "append", after), .seed = seed, .init = init_of(init)});
            });
          },
          nb::arg("layers"), nb::kw_only(), nb::arg("after") = "", nb::arg("seed") = 0,
          nb::arg("init") = "")
      .def(
          "insert",
          [](HeldModel& held, nb::args layers, const std::string& after, const std::string& before,
             std::uint64_t seed, const std::string& init) {
            const std::vector<Layer> added = to_layers(layers);
            change(held, [&](Model& m) {
              edit::insert(m, added,
                           {.after = place(m, "insert", after),
                            .before = place(m, "insert", before),
                            .seed = seed,
                            .init = init_of(init)});
            });
          },
          nb::arg("layers"), nb::kw_only(), nb::arg("after") = "", nb::arg("before") = "",
          nb::arg("seed") = 0, nb::arg("init") = "")
      .def(
          "replace_head",
          [](HeldModel& held, std::int64_t classes, const std::string& output,
             const std::string& name, std::uint64_t seed, const std::string& init) {
            change(held, [&](Model& m) {
              edit::replace_head(
                  m, classes,
                  {.output = output, .name = name, .seed = seed, .init = init_of(init)});
            });
          },
          nb::arg("classes"), nb::kw_only(), nb::arg("output") = "", nb::arg("name") = "",
          nb::arg("seed") = 0, nb::arg("init") = "");
}

void bind_model(nb::module_& module) {
  nb::class_<HeldModel> model(module, "Model");
  model.def_prop_ro("inputs", looking(inputs_of))
      .def_prop_ro("outputs", looking(outputs_of))
      .def_prop_ro("nodes", looking(nodes_of))
      .def_prop_ro("opset", looking([](const Model& m) { return m.opset(); }))
      .def_prop_ro("producer", looking([](const Model& m) { return m.producer_name; }))
      .def_prop_ro("metadata", looking([](const Model& m) { return m.metadata; }))
      .def("weight_names", looking(weight_names))
      .def("initializer", &initializer_array,
           nb::sig("def initializer(self, name: str) -> numpy.ndarray"))
      .def("set_initializer", &set_initializer)
      .def("set_metadata",
           [](HeldModel& held, const std::vector<std::pair<std::string, std::string>>& metadata) {
             held.alone([&](Model& m) { m.metadata = metadata; });
           })
      .def("copy", looking(copy))
      .def("save", &save, nb::arg("path"), nb::arg("external_data") = "")
      .def("to_bytes", &to_bytes);
  bind_edits(model);
  bind_layer_edits(model);
  bind_adapting(model);
}

}  // namespace

void bind_models(nb::module_& module) {
  bind_infos(module);
  bind_model(module);
  module.def(
      "load", [](const Path& path) { return hold(onnx::load(path)); }, nb::arg("path"),
      nb::call_guard<nb::gil_scoped_release>());
  module.def(
      "parse",
      [](nb::bytes bytes, const Path& folder) {
        const std::string_view all(bytes.c_str(), bytes.size());
        const nb::gil_scoped_release unlocked;
        return hold(onnx::parse(all, folder));
      },
      nb::arg("data"), nb::arg("folder") = Path());
  module.def(
      "new",
      [](const std::string& net, const std::vector<std::int64_t>& input, std::int64_t classes,
         std::uint64_t seed) { return hold(make_net(net, Shape(input), classes, seed)); },
      nb::arg("net"), nb::arg("input"), nb::arg("classes"), nb::arg("seed") = 0,
      nb::call_guard<nb::gil_scoped_release>());
  module.def(
      "nets",
      [] {
        std::vector<std::string> names;
        for (const Net& net : nets()) names.emplace_back(net.name);
        return names;
      },
      "The nets that `new` writes.");
}

}  // namespace graft::python
