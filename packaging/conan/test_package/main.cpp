// Trains a small net, writes and reads it.
#include <graft/graft.h>

#include <cstdio>

int main(int argc, char** argv) try {
  if (argc != 2) return 2;
  graft::Model model = graft::make_net("mlp", {4}, /*classes=*/3, /*seed=*/1);
  const graft::Tensor x = graft::Tensor::full(graft::DType::f32, {8, 4}, 1.0);
  const graft::Tensor target = graft::Tensor::full(graft::DType::i64, {8}, 2.0);
  graft::TrainStep step(model, {.optimizer = graft::Adam{.lr = 0.01F}});
  const float before = step.run({x}, target);
  const float after = step.run({x}, target);
  graft::onnx::save(model, argv[1]);
  const graft::Session session(graft::onnx::load(argv[1]));
  std::printf("loss %.4f -> %.4f\n", before, after);
  return after < before ? 0 : 1;
} catch (const graft::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
