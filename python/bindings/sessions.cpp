#include <graft/session.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <string>
#include <vector>

#include "python/bindings/arrays.h"
#include "python/bindings/bindings.h"
#include "python/bindings/held_model.h"

namespace graft::python {
namespace {

/// A Session, and the element types that its inputs have.
class HeldSession {
 public:
  HeldSession(const Model& model, const std::string& device_name, bool weights_change,
              const std::vector<std::string>& outputs)
      : device_(device(device_name)),
        session_(model,
                 {.device = &device_, .weights_change = weights_change, .outputs = outputs}) {
    for (const std::string& name : session_.input_names()) {
      types_.push_back(model.graph().find(name)->type());
    }
  }

  nb::list run(const nb::list& inputs) {
    std::vector<Datum> data;
    for (std::size_t i = 0; i < nb::len(inputs); ++i) {
      const bool is_known = i < types_.size();
      const std::string name = is_known ? session_.input_names()[i] : std::to_string(i);
      data.push_back(
          to_datum(inputs[i], "input '" + name + "'", is_known ? types_[i] : ValueType{}));
    }
    std::vector<Datum> results;
    {
      const nb::gil_scoped_release unlocked;
      results = session_.run_data(data);
    }
    nb::list outputs;
    for (const Datum& result : results) outputs.append(to_python(result));
    return outputs;
  }

  /// The inputs' memory is shared where it is an array's that lies row-major and may be written,
  /// else it is a copy; so `BoundRun.inputs` says where to write.
  BoundRun bind(const nb::list& inputs) {
    if (device_.kind() != DeviceKind::cpu) {
      fail(ErrorKind::unsupported, "arrays lie on the cpu, so no run on ", device_.name(),
           " can be bound to them; use run");
    }
    std::vector<Tensor> tensors;
    for (std::size_t i = 0; i < nb::len(inputs); ++i) {
      const bool is_known = i < types_.size();
      const std::string what =
          "input '" + (is_known ? session_.input_names()[i] : std::to_string(i)) + "'";
      tensors.push_back(
          to_writable_tensor(inputs[i], what, is_known ? types_[i].dtype : DType::undefined));
    }
    const nb::gil_scoped_release unlocked;
    return session_.bind(tensors);
  }

  void set_weights(const nb::dict& weights) {
    std::map<std::string, Tensor> tensors;
    for (const auto& [name, array] : weights) {
      const auto text = nb::cast<std::string>(name);
      tensors[text] = to_tensor(array, "weight '" + text + "'");
    }
    const nb::gil_scoped_release unlocked;
    session_.set_weights(tensors);
  }

  const Session& session() const { return session_; }

 private:
  Device& device_;
  Session session_;
  std::vector<ValueType> types_;
};

void make_session(HeldSession* self, HeldModel& held, const std::string& device,
                  bool weights_change, const std::vector<std::string>& outputs) {
  held.alone(
      [&](const Model& model) { new (self) HeldSession(model, device, weights_change, outputs); });
}

/// Arrays over the tensors.
nb::list to_arrays(const std::vector<Tensor>& tensors) {
  nb::list arrays;
  for (const Tensor& tensor : tensors) arrays.append(to_array(tensor));
  return arrays;
}

}  // namespace

void bind_sessions(nb::module_& module) {
  nb::class_<BoundRun>(module, "BoundRun")
      .def("run", &BoundRun::run, nb::call_guard<nb::gil_scoped_release>())
      .def_prop_ro("inputs", [](const BoundRun& run) { return to_arrays(run.inputs()); })
      .def_prop_ro("outputs", [](const BoundRun& run) { return to_arrays(run.outputs()); });
  nb::class_<HeldSession>(module, "Session")
      .def("__init__", &make_session, nb::arg("model"), nb::arg("device"),
           nb::arg("weights_change"), nb::arg("outputs"))
      .def("run", &HeldSession::run, nb::arg("inputs"))
      .def("bind", &HeldSession::bind, nb::arg("inputs"))
      .def("set_weights", &HeldSession::set_weights, nb::arg("weights"))
      .def_prop_ro("input_names", [](const HeldSession& s) { return s.session().input_names(); })
      .def_prop_ro("output_names", [](const HeldSession& s) { return s.session().output_names(); });
}

}  // namespace graft::python
