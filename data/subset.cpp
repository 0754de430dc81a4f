#include "data/subset.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"

namespace graft {
namespace {

class FirstSamples final : public Dataset {
 public:
  FirstSamples(DatasetInfo info, std::shared_ptr<const Dataset> all)
      : Dataset(std::move(info)), all_(std::move(all)) {}

  void read(std::int64_t index, const SampleRow& row) const override { all_->read(index, row); }

 private:
  std::shared_ptr<const Dataset> all_;
};

}  // namespace

std::shared_ptr<Dataset> first_samples(std::shared_ptr<const Dataset> dataset, std::int64_t count) {
  if (count < 1) fail(ErrorKind::argument, "first ", count, " samples asked, wanted at least 1");
  if (dataset == nullptr) fail(ErrorKind::argument, "first_samples: no data set is given");
  DatasetInfo info = dataset->info();
  info.size = std::min(info.size, count);
  return std::make_shared<FirstSamples>(std::move(info), std::move(dataset));
}

}  // namespace graft
