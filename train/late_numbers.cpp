#include "train/late_numbers.h"

#include <algorithm>
#include <cassert>

#include "autograd/joint_loss.h"
#include "core/base/error.h"
#include "core/device/overlap.h"
#include "train/evaluator.h"

namespace graft {

struct StartedStep::Numbers {
  /// On the host, where the device writes.
  struct Content {
    union {
      float f32;
      double f64;
    } loss;
    std::int64_t count;
  };

  explicit Numbers(Device& where)
      : device(where),
        memory(where.allocate_host(sizeof(Content))),
        content(*::new (memory.get()) Content{}) {
    if (Overlap* const overlap = find_overlap(where)) written = overlap->make_event();
  }
  /// Nothing may be written to memory that is given back.
  ~Numbers() {
    if (written != nullptr) written->settle();
  }
  Numbers(const Numbers&) = delete;
  Numbers& operator=(const Numbers&) = delete;

  void wait() const {
    if (written != nullptr) written->wait();
  }

  Device& device;
  std::shared_ptr<void> memory;
  Content& content;
  DType dtype = DType::undefined;
  bool has_count = false;
  std::unique_ptr<Event> written;  // null where that is done at once
};

double StartedStep::loss() const {
  numbers_->wait();
  const auto& loss = numbers_->content.loss;
  return numbers_->dtype == DType::f64 ? loss.f64 : static_cast<double>(loss.f32);
}

std::optional<std::int64_t> StartedStep::correct() const {
  if (!numbers_->has_count) return std::nullopt;
  numbers_->wait();
  return numbers_->content.count;
}

/// Nobody asks for them any more: what the device may still write there comes first.
const std::shared_ptr<StartedStep::Numbers>& LateNumbers::unused(Device& device) {
  const auto is_unused = [&](const auto& numbers) {
    return numbers.use_count() == 1 && &numbers->device == &device;
  };
  const auto found = std::ranges::find_if(all_, is_unused);
  if (found != all_.end()) return *found;
  return all_.emplace_back(std::make_shared<StartedStep::Numbers>(device));
}

StartedStep LateNumbers::take(const Plan& plan, bool plan_counts, const TrainOptions& options,
                              std::span<const Tensor> targets) {
  const Tensor& loss = plan.output(0);
  assert(loss.dtype() == DType::f32 || loss.dtype() == DType::f64);
  Device& device = loss.device();
  const std::shared_ptr<StartedStep::Numbers>& numbers = unused(device);
  numbers->dtype = loss.dtype();
  device.copy_async(&numbers->content.loss, loss.data(), loss.bytes());
  numbers->has_count = plan_counts || (options.counts_correct && has_class_targets(options.loss));
  if (plan_counts) {
    const Tensor& count = plan.output(plan.output_count() - 1);
    device.copy_async(&numbers->content.count, count.data(), count.bytes());
  } else if (numbers->has_count) {
    const Tensor& prediction = plan.output(1);
    numbers->content.count =
        count_correct(prediction, targets.front(), class_axis(options.loss, prediction.shape()),
                      part_of(options.loss, 0).ignore_index.value_or(-1));
  }
  if (numbers->written != nullptr) numbers->written->set(Stream::work);
  return StartedStep(numbers);
}

}  // namespace graft
