#include <graft/edit.h>
#include <graft/run.h>
#include <graft/train.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "python/bindings/held_model.h"

namespace graft::python {
namespace {

using Names = std::vector<std::string>;

Names add_lora(HeldModel& held, const std::string& pattern, std::int64_t rank,
               std::optional<double> alpha, std::uint64_t seed) {
  return change(held, [&](Model& m) {
    return edit::add_lora(m, {.pattern = pattern, .rank = rank, .alpha = alpha, .seed = seed})
        .adapted;
  });
}

void apply_lora(HeldModel& held, const std::filesystem::path& path, std::optional<double> alpha) {
  change(held, [&](Model& m) { edit::apply_lora(m, load_lora(path, alpha)); });
}

void save_adapters(HeldModel& held, const std::filesystem::path& path) {
  held.alone([&](const Model& m) { save_lora(m, path); });
}

/// What trains changes, so a trainer that was made before has to be made anew.
std::size_t freeze(HeldModel& held, const std::string& pattern) {
  return change(held, [&](Model& m) {
    separate_parameters(m);
    return edit::freeze(m, pattern);
  });
}

Names set_norms(HeldModel& held, const std::string& pattern, const std::string& policy) {
  return change(held, [&](Model& m) {
    separate_parameters(m);
    return edit::set_norms(m, pattern, edit::norm_policy(policy));
  });
}

Names tie(HeldModel& held) {
  return change(held, [](Model& m) {
    Names names;
    for (const Tie& tie : tie_copies(m)) names.push_back(tie.follower);
    return names;
  });
}

}  // namespace

void bind_adapting(nb::class_<HeldModel>& model) {
  model.def("add_lora", &add_lora)
      .def("apply_lora", &apply_lora)
      .def("save_lora", &save_adapters)
      .def("merge_lora", [](HeldModel& held) { return change(held, edit::merge_lora); })
      .def("freeze", &freeze)
      .def("unfreeze",
           [](HeldModel& held, const std::string& pattern) {
             return change(held, [&](Model& m) { return edit::unfreeze(m, pattern); });
           })
      .def("insert_dropout",
           [](HeldModel& held, const std::string& pattern, float ratio) {
             return change(held, [&](Model& m) { return edit::insert_dropout(m, pattern, ratio); });
           })
      .def("set_norms", &set_norms)
      .def("strip_probabilities",
           [](HeldModel& held) { return change(held, edit::strip_probabilities); })
      .def("tie_copies", &tie);
}

}  // namespace graft::python
