// OpDef::multiply_adds. An op that sums products is found by what it computes, whatever its name:
// two elements of different inputs meet where a second difference along both is not 0, so that the
// result holds their product. An output that sums n products of its own meets n elements of either
// input in pairs that are all different: n is bounded by how many elements of each take part. A
// pair that many outputs share (a norm's sum of squares, say) is made once, and counts as a share
// in each. Where all this is more than the elements that are read and written, arithmetic decides
// how long the op runs, so that its row must say how much of it there is.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/ops/cost.h"
#include "core/ops/evaluate.h"
#include "core/ops/registry.h"
#include "tests/sweep/sample_graph.h"

namespace graft::test {
namespace {

using Numbers = std::vector<double>;

/// One node in f64, called with some elements moved a little.
class Probe {
 public:
  Probe(const OpDef& def, const Sample& sample)
      : sample_(make_sample_graph(def, sample, DType::f64)),
        kernel_(find_kernel(*sample_.node, cpu())) {
    for (Tensor& input : sample_.node_inputs) input = input.defined() ? input.clone() : input;
    for (std::size_t i = 0; i < sample_.node_inputs.size(); ++i) {
      const Tensor& input = sample_.node_inputs[i];
      if (!input.defined()) continue;
      elements_ += input.size();
      if (input.dtype() == DType::f64) inputs_.push_back(i);
    }
    if (kernel_.run) elements_ += static_cast<std::int64_t>(results().size());
  }

  const Node& node() const { return *sample_.node; }
  bool has_kernel() const { return static_cast<bool>(kernel_.run); }
  /// That are read or written.
  std::int64_t elements() const { return elements_; }
  /// Those of float type, by place.
  const std::vector<std::size_t>& inputs() const { return inputs_; }
  std::int64_t size(std::size_t input) const { return sample_.node_inputs[input].size(); }

  /// All elements of all outputs.
  Numbers results() const {
    Numbers all;
    for (const Tensor& output : evaluate(kernel_, *sample_.node, sample_.node_inputs)) {
      const bool is_readable = visit_dtype(AllTypes{}, output.dtype(), []<class T>() {});
      if (!output.defined() || !is_readable) continue;  // types of a few bits hold no products
      const Numbers one = to_double(output);
      all.insert(all.end(), one.begin(), one.end());
    }
    return all;
  }

  void move(std::size_t input, std::int64_t element, double by) {
    static_cast<double*>(sample_.node_inputs[input].data())[element] += by;
  }

 private:
  SampleGraph sample_;
  PreparedKernel kernel_;
  std::vector<std::size_t> inputs_;
  std::int64_t elements_ = 0;
};

/// An element of each of two inputs.
using Pair = std::pair<std::int64_t, std::int64_t>;

/// The pairs that meet in each output.
std::vector<std::vector<Pair>> meetings(Probe& probe, std::size_t a, std::size_t b) {
  constexpr double kStep = 0x1p-6;
  constexpr double kRounding = 1e-10;
  const Numbers base = probe.results();
  const auto moved = [&](std::size_t input) {
    std::vector<Numbers> all;
    for (std::int64_t i = 0; i < probe.size(input); ++i) {
      probe.move(input, i, kStep);
      all.push_back(probe.results());
      probe.move(input, i, -kStep);
    }
    return all;
  };
  const std::vector<Numbers> with_a = moved(a);
  const std::vector<Numbers> with_b = moved(b);
  std::vector<std::vector<Pair>> pairs(base.size());
  for (std::size_t i = 0; i < with_a.size(); ++i) {
    probe.move(a, static_cast<std::int64_t>(i), kStep);
    const std::vector<Numbers> with_both = moved(b);
    probe.move(a, static_cast<std::int64_t>(i), -kStep);
    for (std::size_t j = 0; j < with_b.size(); ++j) {
      for (std::size_t at = 0; at < base.size(); ++at) {
        const double change = with_both[j][at] - with_a[i][at] - with_b[j][at] + base[at];
        if (std::abs(change) > kRounding * std::max(1.0, std::abs(base[at]))) {
          pairs[at].emplace_back(i, j);
        }
      }
    }
  }
  return pairs;
}

/// How many products of elements of a and b the outputs sum, each for itself.
double count_products(const std::vector<std::vector<Pair>>& meetings) {
  std::map<Pair, double> outputs;  // in which the pair meets
  for (const std::vector<Pair>& pairs : meetings) {
    for (const Pair& pair : pairs) outputs[pair] += 1.0;
  }
  double products = 0.0;
  for (const std::vector<Pair>& pairs : meetings) {
    std::map<std::int64_t, double> of_a;
    std::map<std::int64_t, double> of_b;
    for (const Pair& pair : pairs) {
      const double share = 1.0 / outputs[pair];
      of_a[pair.first] = std::max(of_a[pair.first], share);
      of_b[pair.second] = std::max(of_b[pair.second], share);
    }
    const auto sum = [](const std::map<std::int64_t, double>& shares) {
      double total = 0.0;
      for (const auto& [element, share] : shares) total += share;
      return total;
    };
    products += std::min(sum(of_a), sum(of_b));
  }
  return products;
}

/// Whether the op sums more products than it reads and writes elements.
bool is_arithmetic(Probe& probe, std::int64_t most_pairs = 1000) {
  const std::vector<std::size_t>& inputs = probe.inputs();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    for (std::size_t j = i + 1; j < inputs.size(); ++j) {
      if (probe.size(inputs[i]) * probe.size(inputs[j]) > most_pairs) continue;
      const double products = count_products(meetings(probe, inputs[i], inputs[j]));
      if (products > static_cast<double>(probe.elements())) return true;
    }
  }
  return false;
}

class ProductTest : public testing::TestWithParam<const OpDef*> {
 protected:
  const OpDef& def() const { return *GetParam(); }
};

TEST_P(ProductTest, CountsItsMultiplyAdds) {
  int most_probed = 6;  // samples, since each takes many runs
  for (const Sample& sample : def().samples()) {
    Probe probe(def(), sample);
    const std::optional<std::int64_t> count = node_multiply_adds(probe.node());
    if (!probe.has_kernel()) continue;
    ASSERT_TRUE(count) << sample.name << ": all its shapes are known";
    if (*count == 0 && most_probed-- > 0 && is_arithmetic(probe)) {
      FAIL() << "on sample " << sample.name
             << " it sums more products than it has elements, and its row has no .multiply_adds";
    }
  }
}

/// Nothing is claimed of shapes that are not known.
TEST_P(ProductTest, CountsNothingOfUnknownShapes) {
  if (def().multiply_adds == nullptr) GTEST_SKIP() << "it says 0 of any";
  for (const Sample& sample : def().samples()) {
    const SampleGraph built = make_sample_graph(def(), sample, DType::f32);
    const std::optional<std::int64_t> known = node_multiply_adds(*built.node);
    for (Value* input : built.graph->inputs()) input->set_type({input->dtype(), std::nullopt});
    for (int i = 0; i < built.node->output_count(); ++i) {
      Value* const output = built.node->output(i);
      if (output != nullptr) output->set_type({output->dtype(), std::nullopt});
    }
    const std::optional<std::int64_t> unknown = node_multiply_adds(*built.node);
    EXPECT_TRUE(!unknown || unknown == known) << sample.name;
  }
}

std::vector<const OpDef*> rows_in_plans() {
  std::vector<const OpDef*> rows;
  for (const OpDef& def : OpRegistry::instance().all()) {
    if (!def.is_dynamic && !def.samples().empty()) rows.push_back(&def);
  }
  return rows;
}

INSTANTIATE_TEST_SUITE_P(Products, ProductTest, testing::ValuesIn(rows_in_plans()),
                         [](const auto& row) { return std::string(row.param->name); });

/// So that the criterion itself is known to see what it has to.
TEST(Products, AreSeenInOpsThatSumThem) {
  for (const auto& [op, domain] :
       {std::pair("MatMul", ""), {"Conv", ""}, {"TiledAttention", kInternalDomain.data()}}) {
    const OpDef& def = *OpRegistry::instance().find(op, domain);
    EXPECT_TRUE(std::ranges::any_of(def.samples(), [&](const Sample& sample) {
      Probe probe(def, sample);
      constexpr std::int64_t kMostPairs = 20'000;
      return probe.has_kernel() && is_arithmetic(probe, kMostPairs);
    })) << op;
  }
}

}  // namespace
}  // namespace graft::test
