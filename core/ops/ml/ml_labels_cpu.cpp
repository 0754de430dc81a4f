#include <algorithm>
#include <cmath>
#include <cstring>
#include <unordered_map>

#include "core/ops/kernels/kernel_dtypes.h"
#include "core/ops/ml/ml_scores.h"
#include "core/ops/registry.h"
#include "core/tensor/slices.h"

namespace graft {
namespace {

std::vector<std::string> texts(const DynamicCall& call, std::string_view name) {
  const Attribute* const found = call.attributes().find(name);
  if (found == nullptr) return {};
  const auto* const list = std::get_if<std::vector<std::string>>(&found->value);
  if (list == nullptr) call.fail(ErrorKind::type, "attribute '", name, "' is not strings");
  return *list;
}

Tensor list(const std::vector<std::string>& values) {
  return Tensor::from_strings({static_cast<std::int64_t>(values.size())}, values);
}

template <class T>
Tensor list(const std::vector<T>& values) {
  return Tensor::from({static_cast<std::int64_t>(values.size())}, values);
}

/// Attribute <prefix>_tensor, _strings, _int64s or _floats as a list.
Tensor list_attribute(const DynamicCall& call, const std::string& prefix) {
  const Attributes& attributes = call.attributes();
  if (const Tensor tensor = attributes.get_tensor(prefix + "_tensor"); tensor.defined()) {
    return tensor.reshaped({tensor.size()});
  }
  if (attributes.has(prefix + "_strings")) return list(texts(call, prefix + "_strings"));
  if (attributes.has(prefix + "_int64s")) return list(attributes.get_ints(prefix + "_int64s"));
  if (attributes.has(prefix + "_floats")) return list(attributes.get_floats(prefix + "_floats"));
  call.fail(ErrorKind::model, "has no attribute ", prefix, "_*");
}

/// Elements as texts that are equal where the elements are: NaN equals NaN.
std::vector<std::string> keys_of(const Tensor& tensor) {
  if (tensor.dtype() == DType::string) return tensor.strings();
  std::vector<std::string> keys;
  const bool ok = visit_kernel_dtype(AllTypes{}, tensor.dtype(), [&]<class T>() {
    for (T value : tensor.values<const T>()) {
      if constexpr (std::is_floating_point_v<T>) {
        if (std::isnan(value)) value = std::numeric_limits<T>::quiet_NaN();
        if (value == 0) value = 0;  // -0 too
      }
      std::string key(sizeof(T), '\0');
      std::memcpy(key.data(), &value, sizeof(T));
      keys.push_back(std::move(key));
    }
  });
  if (!ok) fail(ErrorKind::type, "cannot look up elements of ", tensor);
  return keys;
}

/// The place of each element among `keys`, the last of equal ones; -1 where it is not there.
std::vector<std::int64_t> places(const Tensor& x, const Tensor& keys) {
  if (x.dtype() != keys.dtype()) fail(ErrorKind::type, "cannot look up ", x, " among ", keys);
  std::unordered_map<std::string, std::int64_t> by_key;
  const std::vector<std::string> known = keys_of(keys);
  for (std::size_t i = 0; i < known.size(); ++i) by_key[known[i]] = static_cast<std::int64_t>(i);
  std::vector<std::int64_t> result;
  for (const std::string& key : keys_of(x)) {
    const auto at = by_key.find(key);
    result.push_back(at == by_key.end() ? -1 : at->second);
  }
  return result;
}

/// Element `places[i]` of `values`, or `fallback` [1], in the shape of `x`.
Tensor look_up(const Tensor& x, const std::vector<std::int64_t>& places, const Tensor& values,
               const Tensor& fallback) {
  if (values.dtype() == DType::string) {
    std::vector<std::string> found;
    for (const std::int64_t at : places) {
      found.push_back(at < 0 ? fallback.strings()[0]
                             : values.strings()[static_cast<std::size_t>(at)]);
    }
    return Tensor::from_strings(x.shape(), std::move(found));
  }
  Tensor result = Tensor::empty(values.dtype(), x.shape());
  const bool ok = visit_kernel_dtype(AllTypes{}, values.dtype(), [&]<class T>() {
    const auto from = values.values<const T>();
    const auto to = result.values<T>();
    for (std::size_t i = 0; i < places.size(); ++i) {
      to[i] =
          places[i] < 0 ? fallback.values<const T>()[0] : from[static_cast<std::size_t>(places[i])];
    }
  });
  if (!ok) fail(ErrorKind::type, "cannot look up values of ", values);
  return result;
}

/// What an element without a key becomes: -1, -0.0 or "_Unused", unless an attribute says
/// otherwise.
Tensor default_value(const DynamicCall& call, DType dtype) {
  const Attributes& attributes = call.attributes();
  const Tensor tensor = attributes.get_tensor("default_tensor");
  if (tensor.defined()) {
    if (tensor.dtype() != dtype || tensor.size() != 1) {
      call.fail(ErrorKind::type, "default_tensor is ", tensor, ", wanted one ", dtype);
    }
    return tensor.reshaped({1});
  }
  if (dtype == DType::string) {
    return Tensor::from_strings({1}, {attributes.get_string("default_string", "_Unused")});
  }
  if (is_integer(dtype))
    return list(std::vector{attributes.get_int("default_int64", -1)}).cast(dtype);
  return list(std::vector{attributes.get_float("default_float", -0.0F)}).cast(dtype);
}

Tensor map_elements(const DynamicCall& call, const Tensor& keys, const Tensor& values) {
  if (keys.size() != values.size()) {
    call.fail(ErrorKind::model, "has ", keys.size(), " keys and ", values.size(), " values");
  }
  const Tensor& x = call.tensor(0);
  return look_up(x, places(x, keys), values, default_value(call, values.dtype()));
}

Tensor counting(std::int64_t count) {
  std::vector<std::int64_t> numbers;
  for (std::int64_t i = 0; i < count; ++i) numbers.push_back(i);
  return list(numbers);
}

std::vector<Datum> label_encoder(const DynamicCall& call) {
  if (call.attributes().has("classes_strings")) {
    const Tensor classes = list(texts(call, "classes_strings"));
    const Tensor numbers = counting(classes.size());
    const bool from_text = call.tensor(0).dtype() == DType::string;
    return {from_text ? map_elements(call, classes, numbers)
                      : map_elements(call, numbers, classes)};
  }
  return {map_elements(call, list_attribute(call, "keys"), list_attribute(call, "values"))};
}

std::vector<Datum> category_mapper(const DynamicCall& call) {
  const Tensor words = list(texts(call, "cats_strings"));
  const Tensor numbers = list(call.attributes().get_ints("cats_int64s"));
  const bool from_text = call.tensor(0).dtype() == DType::string;
  return {from_text ? map_elements(call, words, numbers) : map_elements(call, numbers, words)};
}

std::vector<Datum> one_hot_encoder(const DynamicCall& call) {
  const bool by_text = call.tensor(0).dtype() == DType::string;
  const Tensor x = by_text ? call.tensor(0) : call.tensor(0).cast(DType::i64);
  const Tensor categories =
      by_text ? list(texts(call, "cats_strings")) : list(call.attributes().get_ints("cats_int64s"));
  const bool allows_others = call.attributes().get_int("zeros", 1) != 0;
  std::vector<std::int64_t> dims = x.shape().dims();
  dims.push_back(categories.size());
  Tensor result = Tensor::zeros(DType::f32, Shape(std::move(dims)));
  const auto y = result.values<float>();
  const std::vector<std::int64_t> found = places(x, categories);
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i] >= 0) {
      y[i * static_cast<std::size_t>(categories.size()) + static_cast<std::size_t>(found[i])] = 1;
    } else if (!allows_others) {
      call.fail(ErrorKind::argument, "element ", i, " is of no known category");
    }
  }
  return {result};
}

/// y [1, vocabulary]: the map's values at the places of their keys, zeros elsewhere.
std::vector<Datum> dict_vectorizer(const DynamicCall& call) {
  const Dictionary& map = call.at(0).dictionary();
  const Tensor vocabulary = map.keys.dtype() == DType::string
                                ? list(texts(call, "string_vocabulary"))
                                : list(call.attributes().get_ints("int64_vocabulary"));
  const Tensor zero = map.values.dtype() == DType::string ? Tensor::from_strings({1}, {""})
                                                          : Tensor::zeros(map.values.dtype(), {1});
  return {look_up(vocabulary, places(vocabulary, map.keys), map.values, zero)
              .reshaped({1, vocabulary.size()})};
}

/// x [N,C] or [C]: a sequence of N maps from class labels to scores.
std::vector<Datum> zip_map(const DynamicCall& call) {
  const std::vector<std::string> names = texts(call, "classlabels_strings");
  const Tensor keys =
      names.empty() ? list(call.attributes().get_ints("classlabels_int64s")) : list(names);
  const Tensor& x = call.tensor(0);
  if (x.rank() < 1 || x.rank() > 2 || x.shape()[x.rank() - 1] != keys.size()) {
    call.fail(ErrorKind::shape, "x is ", x, ", wanted [N,", keys.size(), "]");
  }
  const Tensor rows = x.rank() == 1 ? x.reshaped({1, x.size()}) : x;
  check_entries(rows, 0);
  Sequence maps;
  for (std::int64_t i = 0; i < rows.shape()[0]; ++i) {
    maps.items.emplace_back(Dictionary{keys, select(rows, 0, i)});
  }
  return {std::move(maps)};
}

}  // namespace

void register_ml_labels_cpu(KernelRegistry& registry) {
  registry.add({.op = "LabelEncoder", .domain = kMlDomain, .run = label_encoder});
  registry.add({.op = "CategoryMapper", .domain = kMlDomain, .run = category_mapper});
  registry.add({.op = "OneHotEncoder", .domain = kMlDomain, .run = one_hot_encoder});
  registry.add({.op = "DictVectorizer", .domain = kMlDomain, .run = dict_vectorizer});
  registry.add({.op = "ZipMap", .domain = kMlDomain, .run = zip_map});
}

}  // namespace graft
