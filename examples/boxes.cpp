// Finds drawn shapes: TinyYOLOv2, whose cells each say for five sizes of box whether one is there,
// where in the cell, how large and of which class. Source: Redmon, Farhadi, arXiv 1612.08242.
//
//   boxes OUT [EPOCHS [SAMPLES]]
#include <graft/data.h>
#include <graft/layers.h>
#include <graft/loss.h>
#include <graft/onnx.h>
#include <graft/train.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <string>

using namespace graft;

namespace {

constexpr std::int64_t kSide = 96;                               // pixels
constexpr std::int64_t kCells = 3;                               // each way, of 32 pixels
constexpr std::int64_t kNumbers = 7;                             // x, y, w, h, sure, two classes
constexpr float kSizes[] = {12.0F, 18.0F, 26.0F, 38.0F, 54.0F};  // of boxes, in pixels

/// A square or a disc on noise. The target is [5,7,cells,cells]: at one size of one cell the place
/// in the cell, the logarithm of how much larger the box is than that size, 1, and the class.
class DrawnShapes final : public Dataset {
 public:
  explicit DrawnShapes(std::int64_t size, unsigned seed)
      : Dataset({.size = size,
                 .inputs = {{"image", DType::f32, Shape{3, kSide, kSide}}},
                 .target = {"boxes", DType::f32, Shape{5, kNumbers, kCells, kCells}}}),
        seed_(seed) {}

  void read(std::int64_t index, const SampleRow& row) const override {
    std::mt19937 random(seed_ + static_cast<unsigned>(index));
    const auto below = [&](float most) {
      return static_cast<float>(random() % 4096U) / 4096 * most;
    };
    const float size = 10 + below(50);
    const float x = size / 2 + below(kSide - size);
    const float y = size / 2 + below(kSide - size);
    const bool is_disc = random() % 2U == 1;
    const auto pixels = row.input<float>();
    for (float& pixel : pixels) pixel = below(0.5F);
    for (std::int64_t i = 0; i < kSide * kSide; ++i) {
      const std::int64_t line = i / kSide;
      const float dx = std::abs(static_cast<float>(i % kSide) + 0.5F - x) * 2 / size;
      const float dy = std::abs(static_cast<float>(line) + 0.5F - y) * 2 / size;
      const bool is_in = is_disc ? dx * dx + dy * dy < 1 : std::max(dx, dy) < 1;
      if (is_in) pixels[static_cast<std::size_t>(i)] = 1.0F;
    }
    std::size_t box = 0;
    while (box < 4 && size * size > kSizes[box] * kSizes[box + 1]) ++box;
    constexpr float kCell = static_cast<float>(kSide) / kCells;
    const float larger = std::log(size / kSizes[box]);
    const float numbers[] = {
        std::fmod(x, kCell) / kCell, std::fmod(y, kCell) / kCell, larger, larger, 1.0F,
        is_disc ? 0.0F : 1.0F,       is_disc ? 1.0F : 0.0F};
    const auto target = row.target<float>();
    std::ranges::fill(target, 0.0F);
    const auto cell =
        static_cast<std::size_t>(y / kCell) * kCells + static_cast<std::size_t>(x / kCell);
    for (std::size_t n = 0; n < kNumbers; ++n) {
      target[(box * kNumbers + n) * kCells * kCells + cell] = numbers[n];
    }
  }

 private:
  unsigned seed_;
};

/// Squared differences of places and sizes, and the entropy of the classes, count where there is a
/// box; how sure the net is counts everywhere.
Loss box_loss() {
  const auto formula = [](const Expr& y, const Expr& target) {
    const std::int64_t batch = y.shape()[0];
    const auto parts = [&](const Expr& x) {
      const Expr rows = reshape(x, {batch, 5, kNumbers, kCells, kCells});
      return call_multi("Split", "", {rows, constant_ints(x.builder(), {2, 2, 1, 2})}, 4,
                        {{"axis", 2}});
    };
    const std::vector<Expr> p = parts(y);
    const std::vector<Expr> t = parts(target);
    const auto sum = [](const Expr& x) { return reduce_sum(x, {}, false); };
    const Expr place = sigmoid(p[0]) - t[0];
    const Expr size = p[1] - t[1];
    const Expr sure = call("Softplus", {p[2]}) - p[2] * t[2];
    const Expr entropy = -call("LogSoftmax", {p[3]}, {{"axis", 2}}) * t[3];
    const Expr boxes = sum((place * place + size * size) * t[2]) * 5.0 + sum(entropy);
    return (boxes + sum(sure)) / static_cast<double>(batch);
  };
  return custom_loss("boxes", formula);
}

void train(const std::string& out, int epochs, std::int64_t samples) {
  DataLoader shapes(std::make_shared<DrawnShapes>(samples, 1U),
                    {.batch = 16, .shuffle = true, .seed = 7});
  DataLoader others(std::make_shared<DrawnShapes>(64, 1U << 30), {.batch = 16});
  Model model = make_net("tinyyolov2", {3, kSide, kSide}, /*classes=*/2);
  Trainer trainer(model, {.loss = box_loss(), .optimizer = AdamW{.lr = 1e-3F}});
  for (const EpochReport& epoch : trainer.fit(shapes, {.epochs = epochs})) {
    std::printf("epoch %d: loss %.3f\n", epoch.epoch, epoch.loss);
  }
  std::printf("loss on other shapes %.3f\n", trainer.evaluate(others).loss);
  onnx::save(model, out);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: boxes OUT [EPOCHS [SAMPLES]]\n");
    return 1;
  }
  try {
    train(argv[1], argc > 2 ? std::stoi(argv[2]) : 10, argc > 3 ? std::stoll(argv[3]) : 2000);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "boxes: %s\n", error.what());
    return 1;
  }
}
