// Trains a small net, writes and reads it; includes its own headers beside Graft's.
#include <graft/graft.h>

#include <cstdio>

#include "core/graph/edit.h"
#include "data/loader.h"
#include "io/onnx.h"

static_assert(own::kDataLoader + own::kCoreGraphEdit + own::kIoOnnx == 3);

int main(int argc, char** argv) try {
  if (argc != 2) return 2;
  graft::Model model = graft::make_net("mlp", {4}, /*classes=*/3, /*seed=*/1);
  const graft::Tensor x = graft::Tensor::full(graft::DType::f32, {8, 4}, 1.0);
  const graft::Tensor target = graft::Tensor::full(graft::DType::i64, {8}, 2.0);
  graft::TrainStep step(model, {.optimizer = graft::Adam{.lr = 0.01F}});
  const float before = step.run({x}, target);
  float after = before;
  for (int i = 0; i < 20; ++i) after = step.run({x}, target);
  graft::onnx::save(model, argv[1]);
  graft::Session session(graft::onnx::load(argv[1]));
  const graft::Tensor logits = session.run({x}).front();
  std::printf("graft %s: loss %.4f -> %.4f, %lld logits\n", std::string(graft::kVersion).c_str(),
              before, after, static_cast<long long>(logits.size()));
  return after < before && logits.size() == 24 ? 0 : 1;
} catch (const graft::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
