#include "tests/train/parallel_nets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/layers/append.h"
#include "data/loader.h"
#include "data/tensor_dataset.h"
#include "tests/train/nets.h"

namespace graft::test {

std::shared_ptr<const Dataset> images(std::int64_t count) {
  return tensor_dataset({{"x", random_tensor({count, 1, 6, 6}, 5)}},
                        {"y", cyclic_labels(count, 3)});
}

Model small_net(bool noisy, std::uint64_t seed) {
  Model model;
  model.set_opset("", 17);
  Value* const x = model.graph().add_input("x", {DType::f32, SymShape{Dim("N"), 1, 6, 6}});
  model.graph().add_output(model.graph().add_node("Identity", "", {x}, {"same"})->output());
  model.graph().outputs().front()->set_type(x->type());
  std::vector<Layer> layers{Conv{.name = "conv", .out = 4, .kernel = {3}, .seed = seed}};
  if (noisy) layers.emplace_back(BatchNorm{.name = "bn"});
  layers.emplace_back(Relu{});
  layers.emplace_back(Flatten{});
  if (noisy) layers.emplace_back(Dropout{.ratio = 0.3F});
  layers.emplace_back(Linear{.name = "head", .out = 3, .seed = seed + 1});
  edit::append(model, layers);
  return model;
}

Batch part(int step, const Communicator& ranks) {
  DataLoader loader(
      images(16),
      {.batch = 16, .shuffle = true, .shard = {.index = ranks.rank(), .count = ranks.size()}});
  loader.set_epoch(step);
  const Batch batch = *loader.begin();
  return {.inputs = {batch.inputs[0].clone()}, .target = batch.target.clone(), .size = batch.size};
}

bool is_rank_0s(const Tensor& tensor, Communicator& ranks) {
  const Tensor first = tensor.clone();
  ranks.broadcast({static_cast<std::byte*>(first.data()), first.bytes()}, 0);
  return equal_bits(first, tensor);
}

void expect_near(const std::vector<Tensor>& found, const std::vector<Tensor>& wanted,
                 double tolerance) {
  ASSERT_EQ(found.size(), wanted.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    const std::vector<double> a = to_double(found[i]);
    const std::vector<double> b = to_double(wanted[i]);
    ASSERT_EQ(a.size(), b.size()) << i;
    for (std::size_t k = 0; k < a.size(); ++k) {
      ASSERT_NEAR(a[k], b[k], tolerance * std::max(1.0, std::abs(b[k]))) << i << ' ' << k;
    }
  }
}

}  // namespace graft::test
