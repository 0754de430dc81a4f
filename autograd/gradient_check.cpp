#include "autograd/gradient_check.h"

#include <cmath>
#include <optional>

#include "autograd/backward.h"
#include "core/base/rng.h"
#include "core/passes/pass.h"
#include "core/runtime/plan.h"

namespace graft::autograd {
namespace {

Tensor random_normal(const Shape& shape, std::uint64_t seed, std::uint64_t stream) {
  Tensor tensor = Tensor::empty(DType::f64, shape);
  const Philox random(seed, stream);
  std::uint64_t index = 0;
  for (double& value : tensor.values<double>()) value = random.normal(index++);
  return tensor;
}

double dot(const Tensor& a, const Tensor& b) {
  double sum = 0.0;
  const auto x = a.values<double>();
  const auto y = b.values<double>();
  for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  return sum;
}

class Checker {
 public:
  Checker(const Graph& graph, const std::vector<Tensor>& inputs, const std::vector<int>& checked,
          const GradientCheckOptions& options)
      : inputs_(inputs), checked_(checked), options_(options) {
    auto forward = graph.clone();
    keep_float_outputs(*forward);
    for (std::size_t i = 0; i < forward->outputs().size(); ++i) {
      weights_.push_back(random_normal(forward->outputs()[i]->known_shape(), options.seed, i));
    }
    passes::decompose(*forward);
    auto both = forward->clone();
    forward_.emplace(std::move(forward));
    compute_gradients(std::move(both));
  }

  std::vector<std::string> run() {
    std::int64_t elements = 0;
    for (const int index : checked_) elements += inputs_[static_cast<std::size_t>(index)].size();
    if (elements <= options_.full_jacobian_elements) {
      check_each_element();
    } else {
      check_directions();
    }
    return std::move(problems_);
  }

 private:
  static void keep_float_outputs(Graph& graph) {
    std::vector<Value*> outputs;
    for (Value* output : graph.outputs()) {
      if (is_float(output->dtype())) outputs.push_back(output);
    }
    graph.set_outputs(outputs);
    passes::eliminate_dead(graph);
  }

  void compute_gradients(std::unique_ptr<Graph> graph) {
    std::vector<Seed> seeds;
    for (std::size_t i = 0; i < graph->outputs().size(); ++i) {
      seeds.push_back({graph->outputs()[i], graph->add_initializer("", weights_[i])});
    }
    std::vector<Value*> wanted;
    for (const int index : checked_) {
      wanted.push_back(passes::required_inputs(*graph)[static_cast<std::size_t>(index)]);
    }
    const std::vector<Value*> gradients = backward(*graph, seeds, wanted);
    std::vector<Value*> outputs;
    for (Value* gradient : gradients) {
      if (gradient != nullptr) outputs.push_back(gradient);
    }
    graph->set_outputs(outputs);
    passes::eliminate_dead(*graph);
    Plan plan(std::move(graph));
    plan.run(inputs_);
    int next = 0;
    for (std::size_t k = 0; k < checked_.size(); ++k) {
      const Shape& shape = inputs_[static_cast<std::size_t>(checked_[k])].shape();
      gradients_.push_back(gradients[k] == nullptr ? Tensor::zeros(DType::f64, shape)
                                                   : plan.output(next++).clone());
    }
  }

  double objective(const std::vector<Tensor>& inputs) {
    forward_->run(inputs);
    double sum = 0.0;
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      sum += dot(weights_[i], forward_->output(static_cast<int>(i)));
    }
    return sum;
  }

  /// Central difference of the objective along `directions` (one a checked input).
  double difference(const std::vector<Tensor>& directions) {
    std::vector<Tensor> moved = inputs_;
    double values[2];
    for (int side = 0; side < 2; ++side) {
      const double step = side == 0 ? options_.epsilon : -options_.epsilon;
      for (std::size_t k = 0; k < checked_.size(); ++k) {
        const auto at = static_cast<std::size_t>(checked_[k]);
        moved[at] = inputs_[at].clone();
        const auto direction = directions[k].values<double>();
        const auto target = moved[at].values<double>();
        for (std::size_t i = 0; i < target.size(); ++i) target[i] += step * direction[i];
      }
      values[side] = objective(moved);
    }
    return (values[0] - values[1]) / (2 * options_.epsilon);
  }

  void compare(double found, double wanted, const std::string& where) {
    const double allowed = options_.absolute + options_.relative * std::abs(wanted);
    if (std::abs(found - wanted) <= allowed) return;  // false for NaN
    problems_.push_back(text(where, ": gradient ", found, ", difference quotient ", wanted));
  }

  void check_each_element() {
    for (std::size_t k = 0; k < checked_.size(); ++k) {
      std::vector<Tensor> directions;
      for (const Tensor& gradient : gradients_) {
        directions.push_back(Tensor::zeros(DType::f64, gradient.shape()));
      }
      for (std::int64_t i = 0; i < gradients_[k].size(); ++i) {
        const auto at = static_cast<std::size_t>(i);
        directions[k].values<double>()[at] = 1.0;
        compare(gradients_[k].values<double>()[at], difference(directions),
                text("input ", checked_[k], " element ", i));
        directions[k].values<double>()[at] = 0.0;
      }
    }
  }

  void check_directions() {
    for (int trial = 0; trial < options_.directions; ++trial) {
      std::vector<Tensor> directions;
      double found = 0.0;
      for (std::size_t k = 0; k < gradients_.size(); ++k) {
        const std::uint64_t stream = 1000 + 100 * static_cast<std::uint64_t>(trial) + k;
        directions.push_back(random_normal(gradients_[k].shape(), options_.seed, stream));
        found += dot(gradients_[k], directions.back());
      }
      compare(found, difference(directions), text("direction ", trial));
    }
  }

  const std::vector<Tensor>& inputs_;
  const std::vector<int>& checked_;
  GradientCheckOptions options_;
  std::vector<Tensor> weights_;
  std::optional<Plan> forward_;
  std::vector<Tensor> gradients_;
  std::vector<std::string> problems_;
};

}  // namespace

std::vector<std::string> check_gradients(const Graph& graph, const std::vector<Tensor>& inputs,
                                         const std::vector<int>& checked,
                                         const GradientCheckOptions& options) {
  return Checker(graph, inputs, checked, options).run();
}

}  // namespace graft::autograd
