#include "python/bindings/layers.h"

#include <graft/error.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "python/bindings/bindings.h"

namespace graft::python {
namespace {

/// One number for all spatial dims, or one each.
using Numbers = std::variant<std::int64_t, std::vector<std::int64_t>>;
using Seed = std::optional<std::uint64_t>;

std::vector<std::int64_t> numbers(const Numbers& given) {
  if (const auto* one = std::get_if<std::int64_t>(&given)) return {*one};
  return std::get<std::vector<std::int64_t>>(given);
}

template <std::size_t... kinds>
bool add_layer_object(nb::handle object, std::vector<Layer>& layers,
                      std::index_sequence<kinds...> /*all*/) {
  const auto add = [&]<class Kind>() {
    if (!nb::isinstance<Kind>(object)) return false;
    layers.emplace_back(nb::cast<Kind>(object));
    return true;
  };
  return (add.template operator()<std::variant_alternative_t<kinds, AnyLayer>>() || ...);
}

/// Layers that have a name and nothing else.
template <class Kind>
void bind_named(nb::module_& module, const char* kind, const char* doc) {
  nb::class_<Kind>(module, kind, doc)
      .def(
          "__init__", [](Kind* self, std::string name) { new (self) Kind{std::move(name)}; },
          nb::arg("name") = "")
      .def_rw("name", &Kind::name);
}

/// Layers with one number more.
template <class Kind, class Number>
void bind_with_number(nb::module_& module, const char* kind, const char* doc, const char* member,
                      Number Kind::*number) {
  nb::class_<Kind>(module, kind, doc)
      .def(
          "__init__",
          [number](Kind* self, Number value, std::string name) {
            new (self) Kind{std::move(name)};
            self->*number = value;
          },
          nb::arg(member) = Kind{}.*number, nb::arg("name") = "")
      .def_rw("name", &Kind::name)
      .def_rw(member, number);
}

std::optional<Init> init_of(const std::optional<std::string>& written) {
  return written ? std::optional(parse_init(*written)) : std::nullopt;
}

void bind_products(nb::module_& module) {
  nb::class_<Linear>(module, "Linear", "y = x W^T + b over the last dim, to `out` features.")
      .def(
          "__init__",
          [](Linear* self, std::string name, std::int64_t out, bool bias, Seed seed,
             const std::optional<std::string>& init) {
            new (self) Linear{std::move(name), out, bias, seed, init_of(init)};
          },
          nb::arg("name"), nb::arg("out"), nb::kw_only(), nb::arg("bias") = true,
          nb::arg("seed") = nb::none(), nb::arg("init") = nb::none())
      .def_rw("name", &Linear::name)
      .def_rw("out", &Linear::out)
      .def_rw("bias", &Linear::bias)
      .def_rw("seed", &Linear::seed);
  nb::class_<Cosine>(module, "Cosine",
                     "The cosines of the angles between x and `out` directions, for graft.arcface.")
      .def(
          "__init__",
          [](Cosine* self, std::string name, std::int64_t out, Seed seed,
             const std::optional<std::string>& init) {
            new (self) Cosine{std::move(name), out, seed, init_of(init)};
          },
          nb::arg("name"), nb::arg("out"), nb::kw_only(), nb::arg("seed") = nb::none(),
          nb::arg("init") = nb::none())
      .def_rw("name", &Cosine::name)
      .def_rw("out", &Cosine::out)
      .def_rw("seed", &Cosine::seed);
  nb::class_<Embedding>(module, "Embedding", "Rows of a weight [count,size], by index.")
      .def(
          "__init__",
          [](Embedding* self, std::string name, std::int64_t count, std::int64_t size, Seed seed,
             const std::optional<std::string>& init) {
            new (self) Embedding{std::move(name), count, size, seed, init_of(init)};
          },
          nb::arg("name"), nb::arg("count"), nb::arg("size"), nb::kw_only(),
          nb::arg("seed") = nb::none(), nb::arg("init") = nb::none())
      .def_rw("name", &Embedding::name);
  nb::class_<MultiHeadAttention>(module, "MultiHeadAttention",
                                 "Self-attention of [N,length,features] with `heads` heads.")
      .def(
          "__init__",
          [](MultiHeadAttention* self, std::string name, std::int64_t heads, bool bias, Seed seed,
             const std::optional<std::string>& init) {
            new (self) MultiHeadAttention{std::move(name), heads, bias, seed, init_of(init)};
          },
          nb::arg("name"), nb::arg("heads"), nb::kw_only(), nb::arg("bias") = true,
          nb::arg("seed") = nb::none(), nb::arg("init") = nb::none())
      .def_rw("name", &MultiHeadAttention::name);
}

void bind_convolutions(nb::module_& module) {
  nb::class_<Conv>(module, "Conv",
                   "A convolution to `out` channels; kernel, stride, padding and dilation are one "
                   "number, or one a spatial dim.")
      .def(
          "__init__",
          [](Conv* self, std::string name, std::int64_t out, const Numbers& kernel,
             const Numbers& stride, const Numbers& padding, const Numbers& dilation,
             std::int64_t groups, bool bias, Seed seed, const std::optional<std::string>& init) {
            new (self) Conv{std::move(name),
                            out,
                            numbers(kernel),
                            numbers(stride),
                            numbers(padding),
                            numbers(dilation),
                            groups,
                            bias,
                            seed,
                            init_of(init)};
          },
          nb::arg("name"), nb::arg("out"), nb::arg("kernel") = 3, nb::kw_only(),
          nb::arg("stride") = 1, nb::arg("padding") = 0, nb::arg("dilation") = 1,
          nb::arg("groups") = 1, nb::arg("bias") = true, nb::arg("seed") = nb::none(),
          nb::arg("init") = nb::none())
      .def_rw("name", &Conv::name)
      .def_rw("out", &Conv::out);
  nb::class_<ConvTranspose>(module, "ConvTranspose",
                            "The transpose of a convolution; numbers as for Conv.")
      .def(
          "__init__",
          [](ConvTranspose* self, std::string name, std::int64_t out, const Numbers& kernel,
             const Numbers& stride, const Numbers& padding, const Numbers& output_padding,
             const Numbers& dilation, std::int64_t groups, bool bias, Seed seed,
             const std::optional<std::string>& init) {
            new (self) ConvTranspose{std::move(name),
                                     out,
                                     numbers(kernel),
                                     numbers(stride),
                                     numbers(padding),
                                     numbers(output_padding),
                                     numbers(dilation),
                                     groups,
                                     bias,
                                     seed,
                                     init_of(init)};
          },
          nb::arg("name"), nb::arg("out"), nb::arg("kernel") = 2, nb::kw_only(),
          nb::arg("stride") = 1, nb::arg("padding") = 0, nb::arg("output_padding") = 0,
          nb::arg("dilation") = 1, nb::arg("groups") = 1, nb::arg("bias") = true,
          nb::arg("seed") = nb::none(), nb::arg("init") = nb::none())
      .def_rw("name", &ConvTranspose::name);
}

/// Lstm and Gru.
template <class Kind>
void bind_recurrent(nb::module_& module, const char* kind, const char* doc) {
  nb::class_<Kind>(module, kind, doc)
      .def(
          "__init__",
          [](Kind* self, std::string name, std::int64_t hidden, std::int64_t depth,
             bool bidirectional, const std::string& steps, Seed seed,
             const std::optional<std::string>& init) {
            if (steps != "all" && steps != "last") {
              fail(ErrorKind::argument, "steps is '", steps, "', wanted all or last");
            }
            new (self) Kind{std::move(name),
                            hidden,
                            depth,
                            bidirectional,
                            steps == "all" ? Steps::all : Steps::last,
                            seed,
                            init_of(init)};
          },
          nb::arg("name"), nb::arg("hidden"), nb::kw_only(), nb::arg("depth") = 1,
          nb::arg("bidirectional") = false, nb::arg("steps") = "all", nb::arg("seed") = nb::none(),
          nb::arg("init") = nb::none())
      .def_rw("name", &Kind::name);
}

void bind_norms(nb::module_& module) {
  nb::class_<LayerNorm>(module, "LayerNorm", "Normalizes each sample over its last `axes` axes.")
      .def(
          "__init__",
          [](LayerNorm* self, std::string name, std::int64_t axes, float epsilon, bool bias) {
            new (self) LayerNorm{std::move(name), axes, epsilon, bias};
          },
          nb::arg("name") = "", nb::kw_only(), nb::arg("axes") = 1,
          nb::arg("epsilon") = LayerNorm{}.epsilon, nb::arg("bias") = true)
      .def_rw("name", &LayerNorm::name);
  nb::class_<GroupNorm>(module, "GroupNorm", "Normalizes each of `groups` parts of the channels.")
      .def(
          "__init__",
          [](GroupNorm* self, std::string name, std::int64_t groups, float epsilon) {
            new (self) GroupNorm{std::move(name), groups, epsilon};
          },
          nb::arg("name"), nb::arg("groups"), nb::kw_only(),
          nb::arg("epsilon") = GroupNorm{}.epsilon)
      .def_rw("name", &GroupNorm::name);
  nb::class_<Reshape>(module, "Reshape", "The same elements as [N,*shape]; one dim may be -1.")
      .def(
          "__init__",
          [](Reshape* self, std::vector<std::int64_t> shape, std::string name) {
            new (self) Reshape{std::move(name), std::move(shape)};
          },
          nb::arg("shape"), nb::arg("name") = "")
      .def_rw("name", &Reshape::name);
}

template <class Pool>
nb::class_<Pool> bind_pool(nb::module_& module, const char* kind, const char* doc) {
  return nb::class_<Pool>(module, kind, doc)
      .def(
          "__init__",
          [](Pool* self, const Numbers& kernel, std::optional<Numbers> stride,
             const Numbers& padding, std::string name) {
            new (self) Pool{.name = std::move(name),
                            .kernel = numbers(kernel),
                            .stride = stride ? numbers(*stride) : std::vector<std::int64_t>(),
                            .padding = numbers(padding)};
          },
          nb::arg("kernel") = 2, nb::arg("stride") = nb::none(), nb::arg("padding") = 0,
          nb::arg("name") = "")
      .def_rw("name", &Pool::name);
}

void bind_others(nb::module_& module) {
  nb::class_<BatchNorm>(module, "BatchNorm",
                        "Normalizes each channel by the batch in training, by running statistics "
                        "else; `momentum` is ONNX's, one minus PyTorch's.")
      .def(
          "__init__",
          [](BatchNorm* self, std::string name, float epsilon, float momentum) {
            new (self) BatchNorm{std::move(name), epsilon, momentum};
          },
          nb::arg("name") = "", nb::kw_only(), nb::arg("epsilon") = BatchNorm{}.epsilon,
          nb::arg("momentum") = BatchNorm{}.momentum)
      .def_rw("name", &BatchNorm::name);
  nb::class_<Residual>(module, "Residual", "body(x) + shortcut(x); without a shortcut body(x) + x.")
      .def(
          "__init__",
          [](Residual* self, nb::list body, nb::list shortcut, std::string name) {
            new (self) Residual{std::move(name), to_layers(body), to_layers(shortcut)};
          },
          nb::arg("body"), nb::arg("shortcut") = nb::list(), nb::arg("name") = "")
      .def_rw("name", &Residual::name);
  bind_pool<MaxPool>(module, "MaxPool", "The largest element of each window.");
  bind_pool<AveragePool>(module, "AveragePool", "The mean of each window.")
      .def_rw("count_padding", &AveragePool::count_padding);
}

}  // namespace

std::vector<Layer> to_layers(nb::handle objects) {
  std::vector<Layer> layers;
  for (nb::handle object : objects) {
    if (nb::isinstance<nb::str>(object)) {
      for (Layer& layer : parse_layers(nb::cast<std::string>(object))) {
        layers.push_back(std::move(layer));
      }
    } else if (!add_layer_object(object, layers,
                                 std::make_index_sequence<std::variant_size_v<AnyLayer>>{})) {
      fail(ErrorKind::argument, "found a ", nb::inst_name(object).c_str(),
           ", wanted a layer, as graft.Linear(\"head\", 10), or text, as \"linear:10:name=head\"");
    }
  }
  return layers;
}

void bind_layers(nb::module_& module) {
  bind_products(module);
  bind_convolutions(module);
  bind_recurrent<Lstm>(module, "LSTM", "Long short-term memory over [N,length,features].");
  bind_recurrent<Gru>(module, "GRU", "Gated recurrent units over [N,length,features].");
  bind_norms(module);
  bind_others(module);
  bind_named<Relu>(module, "Relu", "max(x, 0).");
  bind_named<Relu6>(module, "Relu6", "min(max(x, 0), 6).");
  bind_named<Sigmoid>(module, "Sigmoid", "1 / (1 + exp(-x)).");
  bind_named<Tanh>(module, "Tanh", "The hyperbolic tangent.");
  bind_named<Gelu>(module, "Gelu", "x * Phi(x), of the normal distribution.");
  bind_named<Silu>(module, "Silu", "x * sigmoid(x).");
  bind_named<GlobalAveragePool>(module, "GlobalAveragePool", "The mean of each channel.");
  bind_named<Flatten>(module, "Flatten", "Joins all axes but the first.");
  bind_with_number(module, "LeakyRelu", "x where it is positive, alpha * x elsewhere.", "alpha",
                   &LeakyRelu::alpha);
  bind_with_number(module, "Softmax", "exp(x) over its sum along `axis`.", "axis", &Softmax::axis);
  bind_with_number(module, "LogSoftmax", "The logarithm of Softmax.", "axis", &LogSoftmax::axis);
  bind_with_number(module, "Dropout", "Sets elements to 0 with probability `ratio` in training.",
                   "ratio", &Dropout::ratio);
  module.def("layer_usages", &layer_usages);
}

}  // namespace graft::python
