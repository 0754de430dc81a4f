#include <algorithm>
#include <cmath>

#include "core/ops/kernels/kernel_dtypes.h"
#include "core/ops/ml/ml_scores.h"
#include "core/ops/registry.h"
#include "core/ops/table_limit.h"
#include "core/tensor/slices.h"

namespace graft {
namespace {

/// A kernel that maps each element by map(x, column) to Out; columns are those of the last axis.
template <class Out, class Map>
Kernel column_kernel(KernelRequest& request, const Map& map) {
  const Shape& shape = request.shape();
  const std::int64_t columns = shape.rank() == 0 ? 1 : shape[shape.rank() - 1];
  Kernel kernel;
  visit_kernel_dtype(MlTypes{}, request.dtype(), [&]<class T>() {
    using Result = std::conditional_t<std::is_void_v<Out>, T, Out>;
    kernel = [map, columns, size = shape.size()](const KernelArgs& args) {
      const T* const x = args.input<T>(0);
      auto* const y = args.output<Result>();
      for (std::int64_t i = 0; i < size; ++i) {
        y[i] = static_cast<Result>(map(x[i], static_cast<std::size_t>(i % columns)));
      }
    };
  });
  return kernel;
}

/// A list for each column; a single number serves all.
template <class T>
std::vector<T> for_columns(const KernelRequest& request, std::string_view name,
                           std::vector<T> values) {
  const Shape& shape = request.shape();
  const auto columns = static_cast<std::size_t>(shape.rank() == 0 ? 1 : shape[shape.rank() - 1]);
  if (values.size() == 1) {
    require_small_table(request.node(), static_cast<std::int64_t>(columns));
    values.resize(columns, values.front());
  }
  check_length(request.node(), name, values.size(), columns);
  return values;
}

Kernel make_scaler(KernelRequest& request) {
  std::vector<float> offset = request.attributes().get_floats("offset", {0.0F});
  std::vector<float> scale = request.attributes().get_floats("scale", {1.0F});
  offset = for_columns(request, "offset", std::move(offset));
  scale = for_columns(request, "scale", std::move(scale));
  return column_kernel<float>(request, [offset, scale](auto x, std::size_t column) {
    return (static_cast<double>(x) - offset[column]) * scale[column];
  });
}

Kernel make_binarizer(KernelRequest& request) {
  const float threshold = request.attributes().get_float("threshold", 0);
  return column_kernel<void>(request, [threshold](auto x, std::size_t) {
    return static_cast<double>(x) > threshold ? 1 : 0;
  });
}

Kernel make_imputer(KernelRequest& request) {
  const Attributes& attributes = request.attributes();
  if (is_float(request.dtype())) {
    const std::vector<float> imputed =
        for_columns(request, "imputed_value_floats", attributes.get_floats("imputed_value_floats"));
    const float replaced = attributes.get_float("replaced_value_float", 0);
    return column_kernel<void>(request, [imputed, replaced](auto x, std::size_t column) {
      const bool is_it = std::isnan(replaced) ? x != x : static_cast<double>(x) == replaced;
      return is_it ? static_cast<decltype(x)>(imputed[column]) : x;
    });
  }
  const std::vector<std::int64_t> imputed =
      for_columns(request, "imputed_value_int64s", attributes.get_ints("imputed_value_int64s"));
  const std::int64_t replaced = attributes.get_int("replaced_value_int64", 0);
  return column_kernel<void>(request, [imputed, replaced](auto x, std::size_t column) {
    const bool is_it = static_cast<std::int64_t>(x) == replaced;
    return is_it ? static_cast<decltype(x)>(imputed[column]) : x;
  });
}

/// The number by which a row is divided; 0 leaves the row as it is.
using Norm = double (*)(const double* row, std::int64_t count);

double max_norm(const double* row, std::int64_t count) {
  return count == 0 ? 0 : *std::max_element(row, row + count);
}
double l1_norm(const double* row, std::int64_t count) {
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += std::abs(row[i]);
  return sum;
}
double l2_norm(const double* row, std::int64_t count) {
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += row[i] * row[i];
  return std::sqrt(sum);
}

Kernel make_normalizer(KernelRequest& request) {
  const std::string name = request.attributes().get_string("norm", "MAX");
  const Norm norm = name == "MAX"  ? max_norm
                    : name == "L1" ? l1_norm
                    : name == "L2" ? l2_norm
                                   : nullptr;
  if (norm == nullptr) {
    fail(ErrorKind::model, request.node().label(), ": norm '", name, "' is none of MAX, L1, L2");
  }
  const Samples2d samples = samples_of(request.shape().rank() == 0 ? Shape{1} : request.shape());
  request.need_workspace(bytes_of(DType::f64, samples.features));
  Kernel kernel;
  visit_kernel_dtype(MlTypes{}, request.dtype(), [&]<class T>() {
    kernel = [samples, norm](const KernelArgs& args) {
      auto* const row = static_cast<double*>(args.workspace);
      for (std::int64_t i = 0; i < samples.count; ++i) {
        const T* const x = args.input<T>(0) + i * samples.features;
        std::copy_n(x, samples.features, row);
        const double size = norm(row, samples.features);
        float* const y = args.output<float>() + i * samples.features;
        for (std::int64_t j = 0; j < samples.features; ++j) {
          y[j] = static_cast<float>(size == 0 ? row[j] : row[j] / size);
        }
      }
    };
  });
  return kernel;
}

/// Copies input `index` into its columns of the output.
template <class T>
void copy_columns(const KernelArgs& args, int index, const Samples2d& own, std::int64_t start,
                  std::int64_t width) {
  const T* const x = args.input<T>(index);
  for (std::int64_t i = 0; i < own.count; ++i) {
    float* const y = args.output<float>() + i * width + start;
    for (std::int64_t j = 0; j < own.features; ++j)
      y[j] = static_cast<float>(x[i * own.features + j]);
  }
}

Kernel make_feature_vectorizer(KernelRequest& request) {
  using Copy = void (*)(const KernelArgs&, int, const Samples2d&, std::int64_t, std::int64_t);
  struct Part {
    Copy copy;
    Samples2d samples;
    std::int64_t start;
  };
  std::vector<Part> parts;
  std::int64_t start = 0;
  const std::int64_t width = request.output().shape[1];
  for (int i = 0; i < request.input_count(); ++i) {
    const Samples2d samples = samples_of(request.shape(i));
    if (samples.count != request.output().shape[0]) {
      fail(ErrorKind::shape, request.node().label(), ": inputs have different numbers of rows");
    }
    Copy copy = nullptr;
    visit_kernel_dtype(MlTypes{}, request.dtype(i), [&]<class T>() { copy = copy_columns<T>; });
    if (copy == nullptr) return {};
    parts.push_back({copy, samples, start});
    start += samples.features;
  }
  return [parts, width](const KernelArgs& args) {
    int index = 0;
    for (const Part& part : parts) part.copy(args, index++, part.samples, part.start, width);
  };
}

std::vector<Datum> array_feature_extractor(const DynamicCall& call) {
  const Tensor& given = call.tensor(0);
  if (given.rank() == 0) call.fail(ErrorKind::shape, "x is a scalar, wanted at least rank 1");
  const Tensor x = given.rank() == 1 ? given.reshaped({1, given.size()}) : given;
  const int axis = x.rank() - 1;
  std::vector<Tensor> columns;
  for (const std::int64_t index : to_int64(call.tensor(1))) {
    if (index < 0 || index >= x.shape()[axis]) {
      call.fail(ErrorKind::argument, "index ", index, " out of range for ", x);
    }
    columns.push_back(narrow(x, axis, index, 1));
  }
  return {columns.empty() ? narrow(x, axis, 0, 0) : concat(columns, axis)};
}

}  // namespace

void register_ml_features_cpu(KernelRegistry& registry) {
  const auto add = [&](std::string_view op, KernelFactory make) {
    registry.add({.op = op, .domain = kMlDomain, .name = "reference", .make = make});
  };
  add("Normalizer", make_normalizer);
  add("Scaler", make_scaler);
  add("Binarizer", make_binarizer);
  add("Imputer", make_imputer);
  add("FeatureVectorizer", make_feature_vectorizer);
  registry.add(
      {.op = "ArrayFeatureExtractor", .domain = kMlDomain, .run = array_feature_extractor});
}

}  // namespace graft
