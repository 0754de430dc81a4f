// Files of data: what is read is written and read again, and must be the same.
#include <algorithm>

#include "data/cifar.h"
#include "data/csv.h"
#include "data/dataset.h"
#include "data/gzip.h"
#include "data/idx.h"
#include "data/tensor_dataset.h"
#include "io/npy.h"
#include "io/npz.h"
#include "io/onnx.h"
#include "io/safetensors.h"
#include "tests/fuzz/bytes/folder.h"
#include "tests/fuzz/target.h"

namespace graft::fuzz {
namespace {

void read_some(const Dataset& dataset) {
  require(dataset.size() > 0, "a data set without samples");
  const Batch batch = make_batch(dataset.info(), 1);
  for (const std::int64_t index : {std::int64_t{0}, dataset.size() / 2, dataset.size() - 1}) {
    dataset.read(index, SampleRow(batch, 0));
  }
}

void require_same(const std::vector<NamedTensor>& read, const std::vector<NamedTensor>& again) {
  require(read.size() == again.size(), "another number of tensors when written and read again");
  for (std::size_t i = 0; i < read.size(); ++i) {
    require(read[i].name == again[i].name, "another name: " + again[i].name);
    require(equal_bits(read[i].tensor, again[i].tensor), "other elements: " + read[i].name);
  }
}

/// The last array as targets, all others as inputs.
void read_as_samples(const std::vector<NamedTensor>& tensors) {
  std::vector<NamedSamples> samples;
  for (const NamedTensor& one : tensors) samples.push_back({one.name, one.tensor});
  if (samples.size() < 2) return;
  const NamedSamples target = samples.back();
  samples.pop_back();
  succeeds([&] { read_some(*tensor_dataset(samples, target)); });
}

/// A safetensors file orders its tensors as it likes.
std::vector<NamedTensor> by_name(std::vector<NamedTensor> tensors) {
  std::ranges::sort(tensors, {}, &NamedTensor::name);
  return tensors;
}

}  // namespace

void run_csv(std::string_view bytes) {
  static const KeptFile file("csv");
  succeeds([&] { read_some(*csv(file.write(bytes))); });
}

void run_idx(std::string_view bytes) {
  static const KeptFile file("idx");
  succeeds([&] { read_idx(file.write(bytes)); });
}

void run_cifar(std::string_view bytes) {
  static const KeptFile file("test_batch.bin");
  const auto& path = file.write(bytes);
  succeeds([&] { read_some(*cifar10(path.parent_path(), Split::test)); });
}

void run_gzip(std::string_view bytes) {
  static const KeptFile file("gzip");
  succeeds([&] { read_text(file.write(bytes)); });
}

void run_npy(std::string_view bytes) {
  succeeds([&] {
    const Tensor tensor = npy::parse(bytes);
    require(equal_bits(npy::parse(npy::serialize(tensor)), tensor), "other elements");
  });
}

void run_npz(std::string_view bytes) {
  static const KeptFile file("npz");
  const auto& path = file.write(bytes);
  succeeds([&] {
    const std::vector<NamedTensor> tensors = npz::load(path);
    require(npz::names(path).size() == tensors.size(), "other names than arrays");
    const auto copy = folder().path() / "npz_again";
    if (succeeds([&] { npz::save(copy, tensors); })) require_same(tensors, npz::load(copy));
    read_as_samples(tensors);
  });
}

void run_safetensors(std::string_view bytes) {
  static const KeptFile file("safetensors");
  const auto& path = file.write(bytes);
  succeeds([&] {
    const safetensors::Content content = safetensors::load(path);
    const auto copy = folder().path() / "safetensors_again";
    safetensors::save(copy, content);
    const safetensors::Content again = safetensors::load(copy);
    require_same(by_name(content.tensors), by_name(again.tensors));
    require(std::ranges::is_permutation(content.metadata, again.metadata), "other metadata");
  });
}

void run_tensor(std::string_view bytes) {
  static const KeptFile file("tensor.pb");
  const auto& path = file.write(bytes);
  succeeds([&] {
    const NamedTensor named = onnx::load_tensor(path);
    const auto copy = folder().path() / "again.pb";
    if (!succeeds([&] { onnx::save_tensor(copy, named.tensor, named.name); })) return;
    require_same({named}, {onnx::load_tensor(copy)});
  });
}

}  // namespace graft::fuzz
