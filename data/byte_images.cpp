#include "data/byte_images.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"

namespace graft {
namespace {

class ByteImages final : public Dataset {
 public:
  ByteImages(DatasetInfo info, Tensor images, Tensor labels)
      : Dataset(std::move(info)), images_(std::move(images)), labels_(std::move(labels)) {}

  void read(std::int64_t index, const SampleRow& row) const override {
    const std::span<float> pixels = row.input<float>();
    const auto i = static_cast<std::size_t>(index);
    const auto stored =
        images_.values<const std::uint8_t>().subspan(i * pixels.size(), pixels.size());
    std::ranges::transform(stored, pixels.begin(),
                           [](std::uint8_t value) { return static_cast<float>(value) / 255.0F; });
    row.target<std::int64_t>()[0] = labels_.values<const std::uint8_t>()[i];
  }

 private:
  Tensor images_;
  Tensor labels_;
};

}  // namespace

std::shared_ptr<Dataset> byte_images(const Tensor& images, const Tensor& labels,
                                     std::vector<std::string> class_names,
                                     const std::string& source) {
  if (images.dtype() != DType::u8 || images.rank() != 4) {
    fail(ErrorKind::io, source, ": images are ", images, ", wanted u8[N,C,H,W]");
  }
  if (labels.dtype() != DType::u8 || labels.rank() != 1) {
    fail(ErrorKind::io, source, ": labels are ", labels, ", wanted u8[N]");
  }
  const Shape& shape = images.shape();
  if (shape[0] != labels.shape()[0]) {
    fail(ErrorKind::io, source, ": ", shape[0], " images, but ", labels.shape()[0], " labels");
  }
  const auto all = labels.values<const std::uint8_t>();
  const auto bad =
      std::ranges::find_if(all, [&](std::uint8_t label) { return label >= class_names.size(); });
  if (bad != all.end()) {
    fail(ErrorKind::io, source, ": label ", static_cast<int>(*bad), " of sample ",
         bad - all.begin(), " is out of range, wanted 0 to ", class_names.size() - 1);
  }
  DatasetInfo info;
  info.size = shape[0];
  info.inputs = {{"image", DType::f32, Shape{shape[1], shape[2], shape[3]}}};
  info.target = {"label", DType::i64, Shape{}};
  info.classes = static_cast<std::int64_t>(class_names.size());
  info.class_names = std::move(class_names);
  return std::make_shared<ByteImages>(std::move(info), images, labels);
}

}  // namespace graft
