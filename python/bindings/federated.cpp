#include <graft/run.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "python/bindings/arrays.h"
#include "python/bindings/bindings.h"
#include "python/bindings/held_model.h"

namespace graft::python {
namespace {

namespace fed = federated;

Tensor f32(nb::handle array, const char* what) {
  return to_tensor(array, what, DType::f32);
}

/// A FlatParameters of a model that Python holds.
class HeldFlat {
 public:
  HeldFlat(HeldModel& held, Model& model, std::vector<std::string> names)
      : held_(&held), flat_(model, std::move(names)) {}

  const fed::FlatParameters& flat() const { return flat_; }

  Tensor get() {
    return held_->alone([&](Model&) { return flat_.get(); });
  }
  void set(const Tensor& numbers) {
    held_->alone([&](Model&) { flat_.set(numbers); });
  }
  Tensor delta(const Tensor& before) {
    return held_->alone([&](Model&) { return flat_.delta(before); });
  }

 private:
  HeldModel* held_;
  fed::FlatParameters flat_;
};

void make_flat(HeldFlat* self, HeldModel& held, std::vector<std::string> names) {
  held.alone([&](Model& model) { new (self) HeldFlat(held, model, std::move(names)); });
}

nb::tuple packed(nb::handle delta, std::uint64_t seed) {
  const fed::Packed result = fed::packed(f32(delta, "delta"), seed);
  return nb::make_tuple(to_own_array(result.numbers), to_own_array(result.scales));
}

}  // namespace

void bind_federated(nb::module_& module) {
  nb::class_<HeldFlat>(module, "FlatParameters")
      .def("__init__", &make_flat, nb::keep_alive<1, 2>(), nb::arg("model"), nb::arg("names"))
      .def_prop_ro("names", [](const HeldFlat& held) { return held.flat().names(); })
      .def("__len__", [](const HeldFlat& held) { return held.flat().size(); })
      .def("get", [](HeldFlat& held) { return to_own_array(held.get()); })
      .def("set", [](HeldFlat& held, nb::handle array) { held.set(f32(array, "parameters")); })
      .def("delta", [](HeldFlat& held, nb::handle before) {
        return to_own_array(held.delta(f32(before, "parameters")));
      });
  module.def("clipped", [](nb::handle delta, double most) {
    return to_own_array(fed::clipped(f32(delta, "delta"), most));
  });
  module.def("noised", [](nb::handle delta, double deviation, std::uint64_t seed) {
    return to_own_array(fed::noised(f32(delta, "delta"), deviation, seed));
  });
  module.def("packed", &packed);
  module.def("unpacked", [](nb::handle numbers, nb::handle scales) {
    return to_own_array(fed::unpacked({to_tensor(numbers, "numbers"), f32(scales, "scales")}));
  });
}

}  // namespace graft::python
