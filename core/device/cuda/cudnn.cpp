#include "core/device/cuda/cudnn.h"

#include "core/base/error.h"
#include "core/device/cuda/shared_library.h"

namespace graft {
namespace {

constexpr std::size_t kOldest = 90800;  // the first that plans without a card

std::string written(std::size_t version) {
  return text(version / 10000, ".", version / 100 % 100, ".", version % 100);
}

struct Loaded {
  SharedLibrary library{"libcudnn.so.9"};
  Cudnn functions{};
  std::string problem;

  Loaded() {
    library.find("cudnnGetVersion", functions.version);
    library.find("cudnnGetErrorString", functions.status_text);
    library.find("cudnnCreate", functions.create);
    library.find("cudnnSetStream", functions.set_stream);
    library.find("cudnnBackendCreateDescriptor", functions.create_descriptor);
    library.find("cudnnBackendDestroyDescriptor", functions.destroy_descriptor);
    library.find("cudnnBackendSetAttribute", functions.set_attribute);
    library.find("cudnnBackendGetAttribute", functions.get_attribute);
    library.find("cudnnBackendFinalize", functions.finalize);
    library.find("cudnnBackendExecute", functions.execute);
    problem = library.problem();
    if (problem.empty() && functions.version() < kOldest) {
      problem = text("found ", written(functions.version()), ", wanted ", written(kOldest),
                     " or a later one");
    }
  }
};

const Loaded& loaded() {
  static const Loaded& found = *new Loaded;
  return found;
}

}  // namespace

const Cudnn* cudnn() {
  return loaded().problem.empty() ? &loaded().functions : nullptr;
}

std::string describe_cudnn() {
  const std::string& problem = loaded().problem;
  if (!problem.empty()) return "no cuDNN: " + problem;
  return "cuDNN " + written(loaded().functions.version());
}

}  // namespace graft
