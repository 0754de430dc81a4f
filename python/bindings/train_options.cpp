#include "python/bindings/train_options.h"

#include <graft/error.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "python/bindings/bindings.h"

namespace graft::python {
namespace {

Optimizer optimizer_of(nb::handle object) {
  if (nb::isinstance<nb::str>(object)) return optimizer_from_name(nb::cast<std::string>(object));
  std::optional<Optimizer> found;
  const auto take = [&]<class Kind>() {
    if (nb::isinstance<Kind>(object)) found = nb::cast<Kind>(object);
  };
  [&]<std::size_t... kinds>(std::index_sequence<kinds...>) {
    (take.template operator()<std::variant_alternative_t<kinds, Optimizer>>(), ...);
  }
  (std::make_index_sequence<std::variant_size_v<Optimizer>>{});
  if (!found) {
    fail(ErrorKind::argument, "found a ", nb::inst_name(object).c_str(),
         " as optimizer, wanted a name or an object, as graft.AdamW(lr=1e-3)");
  }
  return *found;
}

bool is_bf16(const std::string& precision, const char* what) {
  if (precision == "f32" || precision == "bf16") return precision == "bf16";
  fail(ErrorKind::argument, what, " is '", precision, "', wanted f32 or bf16");
}

Precision precision_of(const std::string& precision) {
  if (precision == "f32") return Precision::f32;
  if (precision == "tf32") return Precision::tf32;
  if (precision == "bf16") return Precision::bf16;
  fail(ErrorKind::argument, "precision is '", precision, "', wanted f32, tf32 or bf16");
}

/// What an option of that type is to its user.
template <class T>
constexpr const char* kWanted = "a number";
template <>
constexpr const char* kWanted<bool> = "True or False";
template <>
constexpr const char* kWanted<int> = "an integer";
template <>
constexpr const char* kWanted<std::int64_t> = "an integer";
template <>
constexpr const char* kWanted<std::uint64_t> = "an integer from 0 on";
template <>
constexpr const char* kWanted<std::string> = "text";
template <>
constexpr const char* kWanted<std::optional<float>> = "a number or None";
template <>
constexpr const char* kWanted<std::vector<std::string>> = "a list of names";
template <>
constexpr const char* kWanted<std::vector<std::vector<std::string>>> = "a list of lists of names";
template <>
constexpr const char* kWanted<std::vector<ParameterGroup>> = "a list of graft.ParameterGroup";
template <>
constexpr const char* kWanted<Schedule> = "a name or a graft.Schedule";

/// Throws Error{type} naming the option, what was found and what is wanted.
template <class T>
void read_option(const nb::dict& given, const char* name, T& field) {
  const nb::object found = given[name];
  if (nb::try_cast(found, field)) return;
  fail(ErrorKind::type, "option '", name, "' is ", nb::cast<std::string>(nb::repr(found)), " (",
       nb::inst_name(found).c_str(), "), wanted ", kWanted<T>);
}

}  // namespace

TrainOptions options_of(const nb::dict& given) {
  TrainOptions options;
  std::string precision;
  std::string state_precision;
  const auto get = [&]<class T>(const char* name, T& field) { read_option(given, name, field); };
  options.loss = nb::cast<Loss>(given["loss"]);
  options.optimizer = optimizer_of(given["optimizer"]);
  get("groups", options.groups);
  get("layer_decay", options.layer_decay);
  get("ema", options.ema);
  get("trainable", options.trainable);
  get("freeze", options.freeze);
  get("parameters", options.parameters);
  get("tied", options.tied);
  get("output", options.output);
  get("device", options.device);
  get("clip_norm", options.clip.norm);
  get("clip_value", options.clip.value);
  get("total_updates", options.total_updates);
  get("accumulate", options.accumulate);
  get("seed", options.seed);
  get("memory", options.memory_budget);
  get("debug_nan", options.debug_nan);
  get("schedule", options.schedule);
  get("precision", precision);
  get("state_precision", state_precision);
  options.precision = precision_of(precision);
  const bool state = is_bf16(state_precision, "state_precision");
  options.state_precision = state ? StatePrecision::bf16 : StatePrecision::f32;
  return options;
}

}  // namespace graft::python
