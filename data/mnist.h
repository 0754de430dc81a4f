#pragma once

#include <filesystem>
#include <memory>

#include "data/dataset.h"

namespace graft {

/// A folder with MNIST's four files `{train,t10k}-{images-idx3,labels-idx1}-ubyte`, plain or .gz.
/// Input "image" f32[1,28,28] in [0, 1] (the files' own size, should it differ), target "label"
/// i64[], 10 classes. Throws Error{io} if a file is missing or damaged, if a label is above 9, or
/// if there are not as many labels as images.
std::shared_ptr<Dataset> mnist(const std::filesystem::path& folder, Split split);

/// Where Debian's package dataset-fashion-mnist puts its files.
inline constexpr const char* kFashionMnistFolder = "/usr/share/datasets/fashion-mnist";

/// The same files with the classes of Fashion-MNIST:
/// https://github.com/zalandoresearch/fashion-mnist.
std::shared_ptr<Dataset> fashion_mnist(Split split,
                                       const std::filesystem::path& folder = kFashionMnistFolder);

}  // namespace graft
