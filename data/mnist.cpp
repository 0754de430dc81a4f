#include "data/mnist.h"

#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "data/byte_images.h"
#include "data/gzip.h"
#include "data/idx.h"

namespace graft {
namespace {

std::shared_ptr<Dataset> open(const std::filesystem::path& folder, Split split,
                              std::vector<std::string> class_names) {
  const std::string prefix = split == Split::train ? "train" : "t10k";
  const auto images_path = plain_or_gzip(folder / (prefix + "-images-idx3-ubyte"));
  const auto labels_path = plain_or_gzip(folder / (prefix + "-labels-idx1-ubyte"));
  const Tensor images = read_idx(images_path);
  const Tensor labels = read_idx(labels_path);
  if (images.rank() != 3) {
    fail(ErrorKind::io, images_path.string(), ": holds ", images, ", wanted u8[N,H,W]");
  }
  const Shape& shape = images.shape();
  return byte_images(images.reshaped(Shape{shape[0], 1, shape[1], shape[2]}), labels,
                     std::move(class_names), labels_path.string());
}

}  // namespace

std::shared_ptr<Dataset> mnist(const std::filesystem::path& folder, Split split) {
  return open(folder, split, {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"});
}

std::shared_ptr<Dataset> fashion_mnist(Split split, const std::filesystem::path& folder) {
  return open(folder, split,
              {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker",
               "Bag", "Ankle boot"});
}

}  // namespace graft
