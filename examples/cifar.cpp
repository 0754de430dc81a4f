// ResNet-20 on CIFAR-10 with augmentation and a one-cycle schedule.
//
//   cifar DIR [OUT [EPOCHS [SAMPLES]]]      DIR holds data_batch_*.bin[.gz], test_batch.bin[.gz]
#include <graft/data.h>
#include <graft/layers.h>
#include <graft/onnx.h>
#include <graft/train.h>

#include <cstdio>
#include <string>

using namespace graft;

namespace {

void train(const std::string& folder, const std::string& out, int epochs, std::int64_t samples) {
  const Normalize normalize{{0.4914F, 0.4822F, 0.4465F}, {0.2470F, 0.2435F, 0.2616F}};
  DataLoader loader(first_samples(cifar10(folder, Split::train), samples),
                    {.batch = 128,
                     .shuffle = true,
                     .seed = 7,
                     .transforms = {RandomCrop{.padding = 4}, RandomHorizontalFlip{}, normalize}});
  DataLoader test_loader(first_samples(cifar10(folder, Split::test), samples),
                         {.batch = 250, .transforms = {normalize}});

  Model model = make_net("resnet20", {3, 32, 32}, /*classes=*/10, /*seed=*/0);
  Trainer trainer(
      model,
      {.loss = cross_entropy(),
       .optimizer = SGD{.lr = 0.1F, .momentum = 0.9F, .weight_decay = 5e-4F, .nesterov = true},
       .schedule = one_cycle_lr()});
  ProgressBar bar;
  const auto on_step = [&](const Progress& progress) {
    bar.show(progress);
    return true;
  };
  const auto on_epoch = [&](const EpochReport& report) {
    bar.clear();
    std::printf("epoch %d: loss %.4f, accuracy %.2f %%, test accuracy %.2f %%, %.1f s\n",
                report.epoch, report.loss, *report.accuracy * 100.0,
                *report.validation->accuracy * 100.0, report.seconds);
    std::fflush(stdout);
    return true;
  };
  trainer.fit(
      loader,
      {.epochs = epochs, .validation = &test_loader, .on_step = on_step, .on_epoch = on_epoch});
  onnx::save(model, out);
  std::printf("wrote %s\n", out.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: cifar DIR [OUT [EPOCHS [SAMPLES]]]\n");
    return 1;
  }
  try {
    train(argv[1], argc > 2 ? argv[2] : "cifar.onnx", argc > 3 ? std::stoi(argv[3]) : 15,
          argc > 4 ? std::stoll(argv[4]) : 60000);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cifar: %s\n", error.what());
    return 1;
  }
}
