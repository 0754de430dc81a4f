#pragma once

#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "core/layers/append.h"
#include "data/tensor_dataset.h"
#include "tests/train/nets.h"
#include "train/trainer.h"

namespace graft::test {

/// 50 images of 1x8x8 in three classes.
inline std::shared_ptr<const Dataset> images() {
  return tensor_dataset({{"x", random_tensor({50, 1, 8, 8}, 5)}}, {"y", cyclic_labels(50, 3)});
}

/// Convolution, batch normalization, Dropout.
inline Model small_net() {
  Model model;
  model.set_opset("", 17);
  Value* const x = model.graph().add_input("x", {DType::f32, SymShape{Dim("N"), 1, 8, 8}});
  model.graph().add_output(model.graph().add_node("Identity", "", {x}, {"same"})->output());
  model.graph().outputs().front()->set_type(x->type());
  edit::append(model, {Conv{.name = "conv", .out = 4, .kernel = {3}, .seed = 1},
                       BatchNorm{.name = "bn"}, Relu{}, Flatten{}, Dropout{.ratio = 0.3F},
                       Linear{.name = "head", .out = 3, .seed = 2}});
  return model;
}

/// One training in objects of its own.
struct OneTraining {
  explicit OneTraining(TrainOptions options) : net(small_net()), trainer(net, std::move(options)) {}

  /// `most`: steps after which it is broken off; 0: never.
  std::vector<EpochReport> fit(const std::vector<std::shared_ptr<Callback>>& callbacks,
                               const std::filesystem::path& resume, int most) {
    DataLoader loader(images(), {.batch = 8,
                                 .shuffle = true,
                                 .seed = 3,
                                 .transforms = {RandomCrop{.padding = 1}, RandomHorizontalFlip{}}});
    DataLoader held_back(images(), {.batch = 20});
    int steps = 0;
    return trainer.fit(loader, {.epochs = 3,
                                .validation = &held_back,
                                .callbacks = callbacks,
                                .goes_on = [&] { return most == 0 || ++steps < most; },
                                .resume = resume});
  }

  Model net;
  Trainer trainer;
};

}  // namespace graft::test
