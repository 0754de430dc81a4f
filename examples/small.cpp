// Trains one model and no other, for images of 1x28x28 and ten classes, on stripes that it draws:
// the place of the stripe is the class. docs/minimal.md builds it small.
//
//   small MODEL OUT [STEPS [BATCH]]
#include <graft/onnx.h>
#include <graft/tensor.h>
#include <graft/train.h>

#include <cstdio>
#include <exception>
#include <random>
#include <string>

using namespace graft;

namespace {

constexpr std::int64_t kSide = 28;
constexpr std::int64_t kClasses = 10;

/// Images of noise, each with a bright stripe two pixels high.
void draw(std::mt19937& random, Tensor& images, Tensor& classes) {
  std::int64_t at = 0;
  for (std::int64_t& label : classes.values<std::int64_t>()) {
    label = static_cast<std::int64_t>(random() % kClasses);
    const auto pixels = images.values<float>().subspan(static_cast<std::size_t>(at), kSide * kSide);
    for (std::size_t i = 0; i < pixels.size(); ++i) {
      const bool is_stripe = static_cast<std::int64_t>(i / (2 * kSide)) == label + 2;
      pixels[i] = (is_stripe ? 0.6F : 0.0F) + static_cast<float>(random() % 1024U) / 2048.0F;
    }
    at += kSide * kSide;
  }
}

void train(const std::string& in, const std::string& out, int steps, std::int64_t batch) {
  Model model = onnx::load(in);
  TrainStep step(model, {.optimizer = SGD{.lr = 0.05F, .momentum = 0.9F}});
  Tensor images = Tensor::empty(DType::f32, {batch, 1, kSide, kSide});
  Tensor classes = Tensor::empty(DType::i64, {batch});
  std::mt19937 random(7);
  for (int i = 1; i <= steps; ++i) {
    draw(random, images, classes);
    const float loss = step.run({images}, classes);
    if (i == 1 || i % 50 == 0) std::printf("step %d: loss %.4f\n", i, static_cast<double>(loss));
  }
  onnx::save(model, out);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: small MODEL OUT [STEPS [BATCH]]\n");
    return 1;
  }
  try {
    train(argv[1], argv[2], argc > 3 ? std::stoi(argv[3]) : 200,
          argc > 4 ? std::stoll(argv[4]) : 32);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "small: %s\n", error.what());
    return 1;
  }
}
