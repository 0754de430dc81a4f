#include "io/npz.h"

#include <set>

#include "core/base/error.h"
#include "io/npy.h"
#include "io/zip.h"

namespace graft::npz {
namespace {

constexpr std::string_view kSuffix = ".npy";

/// The name without ".npy".
std::string array_name(const ZipEntry& entry) {
  if (!entry.name.ends_with(kSuffix)) {
    fail(ErrorKind::io, "npz: member '", entry.name, "' is no .npy file");
  }
  return entry.name.substr(0, entry.name.size() - kSuffix.size());
}

/// Calls use(zip) with the archive; errors name its path.
template <class Use>
auto on_archive(const std::filesystem::path& path, const Use& use) {
  try {
    return use(ZipReader(path));
  } catch (const Error& error) {
    fail(error.kind(), "cannot load '", path.string(), "': ", error.what());
  }
}

}  // namespace

std::vector<std::string> names(const std::filesystem::path& path) {
  return on_archive(path, [](const ZipReader& zip) {
    std::vector<std::string> list;
    for (const ZipEntry& entry : zip.entries()) list.push_back(array_name(entry));
    return list;
  });
}

std::vector<NamedTensor> load(const std::filesystem::path& path,
                              const std::function<bool(const std::string&)>& wanted) {
  return on_archive(path, [&](const ZipReader& zip) {
    std::vector<NamedTensor> tensors;
    for (const ZipEntry& entry : zip.entries()) {
      const std::string name = array_name(entry);
      if (wanted && !wanted(name)) continue;
      try {
        tensors.push_back({name, npy::parse(zip.read(entry))});
      } catch (const Error& error) {
        fail(error.kind(), "member '", entry.name, "': ", error.what());
      }
    }
    return tensors;
  });
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
