#include "io/npz.h"

#include <set>

#include "core/base/error.h"
#include "io/npy.h"
#include "io/zip.h"

namespace graft::npz {
namespace {

constexpr std::string_view kSuffix = ".npy";

}  // namespace

std::vector<NamedTensor> load(const std::filesystem::path& path) {
  try {
    const ZipReader zip(path);
    std::vector<NamedTensor> tensors;
    for (const ZipEntry& entry : zip.entries()) {
      if (!entry.name.ends_with(kSuffix)) {
        fail(ErrorKind::io, "npz: member '", entry.name, "' is no .npy file");
      }
      try {
        tensors.push_back({entry.name.substr(0, entry.name.size() - kSuffix.size()),
                           npy::parse(zip.read(entry))});
      } catch (const Error& error) {
        fail(error.kind(), "member '", entry.name, "': ", error.what());
      }
    }
    return tensors;
  } catch (const Error& error) {
    fail(error.kind(), "cannot load '", path.string(), "': ", error.what());
  }
}

void save(const std::filesystem::path& path, std::span<const NamedTensor> tensors) {
  std::set<std::string_view> names;
  for (const NamedTensor& tensor : tensors) {
    if (tensor.name.empty() || !names.insert(tensor.name).second) {
      fail(ErrorKind::argument, "npz: the name '", tensor.name, "' is empty or there twice");
    }
  }
  ZipWriter zip(path);
  for (const NamedTensor& tensor : tensors) {
    zip.add(tensor.name + std::string(kSuffix), npy::serialize(tensor.tensor));
  }
  zip.commit();
}

}  // namespace graft::npz
