// (x - mean) / sqrt(variance + epsilon) * scale + bias, as exporters write it before opset 17, and
// the same without mean and bias (RMS).
#include <algorithm>

#include "core/base/at.h"
#include "core/ops/infer.h"
#include "core/passes/pass.h"
#include "core/passes/rewrite_passes.h"

namespace graft::passes {
namespace {
namespace layer_norm_fusion {

const Pattern x = any();
const Pattern scale = any();
const Pattern bias = any();
const Pattern epsilon = any_number();

Pattern mean_of(const Pattern& of) {
  return op("ReduceMean", {of});
}
const Pattern mean = mean_of(x);
const Pattern deviation = x - mean;
const Pattern variance = mean_of(square(deviation));
const Pattern mean_square = mean_of(square(x));

/// From which axis on the node takes the mean of all, if it keeps their dims.
std::optional<int> first_axis_of(const Node& reduction) {
  const std::optional<Shape> shape = shape_of(reduction.input(0));
  const Tensor given = reduction.input(1) == nullptr ? Tensor() : constant_of(reduction.input(1));
  if (!shape || reduction.attributes.get_int("keepdims", 1) == 0 || !given.defined() ||
      given.dtype() != DType::i64) {
    return std::nullopt;
  }
  const int rank = shape->rank();
  std::vector<std::int64_t> axes;
  for (const std::int64_t axis : given.values<std::int64_t>()) {
    axes.push_back(axis < 0 ? axis + rank : axis);
  }
  std::ranges::sort(axes);
  const int count = static_cast<int>(axes.size());
  for (int i = 0; i < count; ++i) {
    if (at(axes, i) != rank - count + i) return std::nullopt;
  }
  return count == 0 ? std::nullopt : std::optional(rank - count);
}

/// The dims that are normalized together.
Shape row_of(const Match& m, int axis) {
  const Shape shape = m[x].shape();
  return Shape(std::vector<std::int64_t>(shape.begin() + axis, shape.end()));
}

/// Whether the formula is that of a norm over the last axes, of which `reduction` is the mean.
bool is_norm(const Match& m, const Pattern& reduction) {
  const DType dtype = m[x].dtype();
  const std::optional<int> axis = first_axis_of(m.node(reduction));
  if (!axis || (dtype != DType::f32 && dtype != DType::f64) || m.number(epsilon) < 0.0 ||
      !fits_attribute(m.number(epsilon), dtype) || !have_one_shape(m[x].value(), m.result())) {
    return false;
  }
  const auto is_parameter = [&](const Pattern& pattern) {
    const Expr value = m[pattern];
    return !value || value.rank() == 0 || value.shape() == row_of(m, *axis);
  };
  return is_parameter(scale) && is_parameter(bias);
}

Results norm(const Match& m, std::string_view name, const Pattern& reduction) {
  const int axis = first_axis_of(m.node(reduction)).value();
  const auto ones = [&] {
    return m.builder().constant(Tensor::full(m[x].dtype(), row_of(m, axis), 1.0));
  };
  std::vector<Expr> inputs{m[x], m.has(scale) ? m[scale] : m.builder().expr(ones())};
  if (m.has(bias)) inputs.push_back(m[bias]);
  return call(name, inputs, {{"axis", axis}, {"epsilon", static_cast<float>(m.number(epsilon))}});
}

/// What samples are made of.
Expr sample_mean(const Expr& of, const std::vector<std::int64_t>& axes) {
  return call("ReduceMean", {of, constant_ints(of.builder(), axes)});
}
Expr sample_root(const Expr& square, const std::vector<std::int64_t>& axes) {
  return sqrt(sample_mean(square, axes) + 0.5);
}

const std::vector<Rewrite> kRewrites{
    {.name = "layer_norm",
     .match = deviation / sqrt(variance + epsilon) * opt(scale) + opt(bias),
     .where =
         [](const Match& m) {
           return first_axis_of(m.node(mean)) == first_axis_of(m.node(variance)) &&
                  is_norm(m, mean);
         },
     .to = [](const Match& m) { return norm(m, "LayerNormalization", mean); },
     .samples = {{"as_exported",
                  [](SampleNet& net) {
                    const Expr in = net.input({2, 3, 4});
                    const Expr d = in - sample_mean(in, {-1});
                    return d / sample_root(pow(d, 2.0), {-1}) * net.input({4}) + net.input({4});
                  }},
                 {"difference_twice",
                  [](SampleNet& net) {
                    const Expr in = net.input({2, 3, 4});
                    const Expr middle = sample_mean(in, {-1});
                    const Expr d = in - middle;
                    return (in - middle) * reciprocal(sample_root(d * d, {2})) * net.input({4}) +
                           net.input({});
                  }},
                 {"two_axes",
                  [](SampleNet& net) {
                    const Expr in = net.input({2, 3, 4});
                    const Expr d = in - sample_mean(in, {1, 2});
                    return d * (1.0 / sample_root(d * d, {-1, -2}));
                  }},
                 {"bias_alone",
                  [](SampleNet& net) {
                    const Expr in = net.input({5, 4});
                    const Expr d = in - sample_mean(in, {1});
                    return d / sample_root(d * d, {1}) + net.input({4});
                  }}}},
    {.name = "rms_norm",
     .match = x / sqrt(mean_square + epsilon) * opt(scale),
     .where = [](const Match& m) { return is_norm(m, mean_square); },
     .to = [](const Match& m) { return norm(m, "RMSNormalization", mean_square); },
     .samples = {{"scaled",
                  [](SampleNet& net) {
                    const Expr in = net.input({2, 3, 4});
                    return in / sample_root(pow(in, 2.0), {-1}) * net.input({4});
                  }},
                 {"by_reciprocal",
                  [](SampleNet& net) {
                    const Expr in = net.input({2, 3, 4});
                    return net.input({4}) * (in * reciprocal(sample_root(in * in, {2})));
                  }},
                 {"bare",
                  [](SampleNet& net) {
                    const Expr in = net.input({3, 4});
                    return (1.0 / sample_root(in * in, {0, 1})) * in;
                  }}}},
};

}  // namespace layer_norm_fusion
}  // namespace

std::span<const Rewrite> fuse_layer_norm_rewrites() {
  return layer_norm_fusion::kRewrites;
}

bool fuse_layer_norm(Graph& graph) {
  return rewrite(graph, layer_norm_fusion::kRewrites);
}

}  // namespace graft::passes
