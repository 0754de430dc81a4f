#pragma once

#include <cudnn.h>

#include <string>

namespace graft {

/// The functions of cuDNN that Graft calls.
struct Cudnn {
  decltype(&cudnnGetVersion) version;
  decltype(&cudnnGetErrorString) status_text;
  decltype(&cudnnCreate) create;
  decltype(&cudnnSetStream) set_stream;
  decltype(&cudnnBackendCreateDescriptor) create_descriptor;
  decltype(&cudnnBackendDestroyDescriptor) destroy_descriptor;
  decltype(&cudnnBackendSetAttribute) set_attribute;
  decltype(&cudnnBackendGetAttribute) get_attribute;
  decltype(&cudnnBackendFinalize) finalize;
  decltype(&cudnnBackendExecute) execute;
};

/// Null where the library is not, not whole, or too old to plan for a card by its properties.
const Cudnn* cudnn();

/// "cuDNN 9.19.0"; or "no cuDNN: " and why.
std::string describe_cudnn();

}  // namespace graft
