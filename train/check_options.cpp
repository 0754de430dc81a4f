#include "train/check_options.h"

#include "core/base/error.h"

namespace graft {

void check(const TrainOptions& options) {
  const Device& target = device(options.device);  // throws if there is none
  if (options.accumulate < 1) {
    fail(ErrorKind::argument, "accumulate is ", options.accumulate, ", wanted at least 1");
  }
  if (options.sync_every < 1) {
    fail(ErrorKind::argument, "sync_every is ", options.sync_every, ", wanted at least 1");
  }
  if (options.sync_every > 1 && options.wire_precision == WirePrecision::bf16) {
    fail(ErrorKind::argument, "wire_precision is bf16 and sync_every ", options.sync_every,
         ": ranks that update by themselves send no gradients; leave one of them out");
  }
  if (options.shard_state && options.sync_every > 1) {
    fail(ErrorKind::argument, "shard_state is set and sync_every is ", options.sync_every,
         ": ranks that update by themselves keep all state; leave one of them out");
  }
  if (options.shard_state && options.ema > 0.0F) {
    fail(ErrorKind::unsupported, "shard_state is set and ema is ", options.ema,
         ": averages of weights are kept whole only; leave one of them out");
  }
  if (options.optimizer) {
    check(*options.optimizer);
    check(*options.optimizer, options.state_precision);
  }
  check(options.clip);
  options.schedule.factor(0, 1);  // throws if a setting makes no sense
  check_total_updates(options.total_updates);
  if (!(options.ema >= 0.0F && options.ema < 1.0F)) {
    fail(ErrorKind::argument, "ema is ", options.ema, ", wanted a decay from 0 to below 1");
  }
  const int ranks = or_alone(options.communicator).size();
  if (ranks > 1 && target.kind() != DeviceKind::cpu) {
    fail(ErrorKind::unsupported, "the device is ", target.name(), " and ", ranks,
         " ranks train together, which they can on cpu only");
  }
}

void check_total_updates(std::int64_t total) {
  if (total >= 0 && total <= kMostCounted) return;
  fail(ErrorKind::argument, "total_updates is ", total, ", wanted 0 to ", kMostCounted);
}

}  // namespace graft
