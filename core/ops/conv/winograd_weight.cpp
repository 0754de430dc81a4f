#include "core/ops/conv/winograd_weight.h"

#include <vector>

#include "core/ops/kernels/held_constants.h"

namespace graft {

void WinogradWeight::turn(const float* weight, std::int64_t block, float* by_taps,
                          float* to) const {
  for_each_panel(block, [&](const TargetBlock& panel, std::int64_t offset) {
    panels_.pack(weight, panel, by_taps);
    panels_.for_each_slice([&](std::int64_t first, std::int64_t count) {
      const std::int64_t size = count * panel.row();
      const float* const from = by_taps + panels_.slice_offset(panel, first);
      float* const turned = to + offset + kTileNumbers * first * panel.row();
      for (std::int64_t i = 0; i < size; i += kRegisterLanes) {
        turn_weight<kRegisterLanes>(from + i, size, turned + i, size);
      }
    });
  });
}

std::shared_ptr<const Tensor> WinogradWeight::turn_now(const float* weight) const {
  static HeldConstants<Tensor> held;
  auto made = std::make_shared<Tensor>(Tensor::zeros(DType::f32, {blocks(), block_size()}));
  std::vector<float> by_taps(static_cast<std::size_t>(panels_.block_size()));
  for (std::int64_t i = 0; i < blocks(); ++i) {
    turn(weight, i, by_taps.data(), made->values<float>().data() + i * block_size());
  }
  return held.share(weight, std::shared_ptr<const Tensor>(std::move(made)), equal_bits);
}

}  // namespace graft
