#include <graft/data.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "python/bindings/arrays.h"
#include "python/bindings/bindings.h"

namespace graft::python {
namespace {

using SharedDataset = std::shared_ptr<Dataset>;

Split split_of(const std::string& text) {
  if (text == "train") return Split::train;
  if (text == "test") return Split::test;
  fail(ErrorKind::argument, "unknown split '", text, "'; valid: train, test");
}

/// DType::undefined if no type has the name.
DType dtype_from_name(const std::string& text) {
  for (int number = 1; is_known_dtype(number); ++number) {
    if (name(static_cast<DType>(number)) == text) return static_cast<DType>(number);
  }
  return DType::undefined;
}

std::vector<DType> dtypes_from_names(const std::vector<std::string>& names) {
  std::vector<DType> dtypes;
  for (const std::string& text : names) dtypes.push_back(dtype_from_name(text));
  return dtypes;
}

/// The class indices that losses take are i64; floats are what the model's output is.
DType target_type(const Tensor& target, const std::string& wanted) {
  return is_float(target.dtype()) ? dtype_from_name(wanted) : DType::undefined;
}

SharedDataset dataset_of_arrays(const std::vector<std::pair<std::string, nb::object>>& inputs,
                                nb::handle target, std::int64_t classes,
                                const std::vector<std::string>& input_types,
                                const std::string& type_of_target,
                                std::optional<std::int64_t> ignore_index) {
  const std::vector<DType> wanted = dtypes_from_names(input_types);
  std::vector<NamedSamples> samples;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto& [name, array] = inputs[i];
    samples.push_back({name, to_tensor(array, "input '" + name + "'"),
                       i < wanted.size() ? wanted[i] : DType::undefined});
  }
  const Tensor targets = to_tensor(target, "target");
  NamedSamples last{"target", targets, target_type(targets, type_of_target)};
  const nb::gil_scoped_release unlocked;
  return tensor_dataset(std::move(samples), std::move(last), classes, {}, ignore_index);
}

SharedDataset dataset_of_spec(const std::string& spec, const std::string& split,
                              const std::vector<std::string>& input_types,
                              const std::string& type_of_target) {
  const nb::gil_scoped_release unlocked;
  return open_data(
      spec, split_of(split),
      {.inputs = dtypes_from_names(input_types), .target = dtype_from_name(type_of_target)});
}

std::vector<Transform> transforms_of(nb::handle objects) {
  std::vector<Transform> transforms;
  for (nb::handle object : objects) {
    if (nb::isinstance<Normalize>(object)) {
      transforms.emplace_back(nb::cast<Normalize>(object));
    } else if (nb::isinstance<RandomCrop>(object)) {
      transforms.emplace_back(nb::cast<RandomCrop>(object));
    } else if (nb::isinstance<RandomHorizontalFlip>(object)) {
      transforms.emplace_back(nb::cast<RandomHorizontalFlip>(object));
    } else {
      fail(ErrorKind::argument, "found a ", nb::inst_name(object).c_str(),
           " among the transforms, wanted Normalize, RandomCrop or RandomHorizontalFlip");
    }
  }
  return transforms;
}

/// One epoch of a loader. Its batches are the loader's own buffers.
class Epoch {
 public:
  explicit Epoch(DataLoader& loader) : loader_(&loader) {}

  std::optional<Batch> next() {
    const nb::gil_scoped_release unlocked;
    if (!at_) {
      at_.emplace(loader_->begin());
      following_ = loader_->epoch();
    } else if (loader_->epoch() != following_) {
      fail(ErrorKind::argument,
           "data loader: another pass over this loader has begun; give each "
           "its own loader");
    } else if (*at_ != loader_->end()) {
      ++*at_;
    }
    if (*at_ == loader_->end()) return std::nullopt;
    return **at_;
  }

 private:
  DataLoader* loader_;
  std::int64_t following_ = 0;  // the epoch that the loader gives next
  std::optional<DataLoader::Iterator> at_;
};

void bind_datasets(nb::module_& module) {
  nb::class_<Dataset>(module, "Dataset")
      .def("__len__", &Dataset::size)
      .def_prop_ro("classes", [](const Dataset& data) { return data.info().classes; })
      .def_prop_ro("class_names", [](const Dataset& data) { return data.info().class_names; });
  module.def("dataset_of_arrays", &dataset_of_arrays, nb::arg("inputs"), nb::arg("target"),
             nb::arg("classes"), nb::arg("input_types"), nb::arg("target_type"),
             nb::arg("ignore_index").none());
  module.def("dataset_of_spec", &dataset_of_spec, nb::arg("spec"), nb::arg("split"),
             nb::arg("input_types"), nb::arg("target_type"));
  module.def("first_samples", [](const SharedDataset& data, std::int64_t count) {
    return first_samples(data, count);
  });
  module.def("has_test_split", &has_test_split, nb::arg("spec"));
  module.def("known_normalization", &known_normalization, nb::arg("spec"),
             "Normalize by the statistics of a known data set's training split; None where they "
             "are not known.");
}

void bind_transforms(nb::module_& module) {
  nb::class_<Normalize>(module, "Normalize",
                        "(pixel - mean) / deviation, with one number a channel or one for all.")
      .def(nb::init<std::vector<float>, std::vector<float>>(), nb::arg("mean"),
           nb::arg("deviation"))
      .def_ro("mean", &Normalize::mean)
      .def_ro("deviation", &Normalize::deviation);
  nb::class_<RandomCrop>(module, "RandomCrop",
                         "A random crop of the image's own size, out of it with zeros around.")
      .def(nb::init<std::int64_t>(), nb::arg("padding") = 4)
      .def_ro("padding", &RandomCrop::padding);
  nb::class_<RandomHorizontalFlip>(module, "RandomHorizontalFlip",
                                   "Swaps left and right with that probability.")
      .def(nb::init<double>(), nb::arg("probability") = 0.5)
      .def_ro("probability", &RandomHorizontalFlip::probability);
}

void bind_loader(nb::module_& module) {
  nb::class_<Batch>(module, "Batch")
      .def_ro("size", &Batch::size)
      .def("arrays", [](const Batch& batch) {
        nb::list inputs;
        for (const Tensor& input : batch.inputs) inputs.append(to_new_array(input));
        return nb::make_tuple(inputs, to_new_array(batch.target));
      });
  nb::class_<Epoch>(module, "Epoch")
      .def(nb::init<DataLoader&>(), nb::keep_alive<1, 2>())
      .def("next", &Epoch::next);
  nb::class_<DataLoader>(module, "DataLoader")
      .def(
          "__init__",
          [](DataLoader* self, const SharedDataset& data, std::int64_t batch, bool shuffle,
             std::uint64_t seed, bool drop_last, int prefetch, nb::handle transforms) {
            new (self) DataLoader(data, {.batch = batch,
                                         .shuffle = shuffle,
                                         .seed = seed,
                                         .drop_last = drop_last,
                                         .prefetch = prefetch,
                                         .transforms = transforms_of(transforms)});
          },
          nb::arg("data"), nb::arg("batch"), nb::arg("shuffle"), nb::arg("seed"),
          nb::arg("drop_last"), nb::arg("prefetch"), nb::arg("transforms"))
      .def_prop_ro("batches", &DataLoader::batches)
      .def_prop_rw("epoch", &DataLoader::epoch, &DataLoader::set_epoch);
}

}  // namespace

void bind_data(nb::module_& module) {
  bind_datasets(module);
  bind_transforms(module);
  bind_loader(module);
}

}  // namespace graft::python
