// Through cuDNN's backend descriptors: tensors and a convolution make an operation, that a graph;
// heuristics name engines for it, and the first that may be used becomes the plan. Each descriptor
// is filled, finalized, and then read by those made of it, which is why all of them are kept.
#include "core/device/cuda/cudnn_plan.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/device/cuda/cudnn.h"

namespace graft {
namespace {

using Dims = std::vector<std::int64_t>;

/// A descriptor, destroyed at the end. After a call that fails, `status` says why, and the others
/// do nothing.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(cudnnBackendDescriptorType_t type) {
    keep(cudnn()->create_descriptor(type, &handle_));
  }
  ~Descriptor() {
    if (handle_ != nullptr) cudnn()->destroy_descriptor(handle_);
  }
  Descriptor(Descriptor&& other) noexcept
      : handle_(std::exchange(other.handle_, nullptr)), status_(other.status_) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(handle_, other.handle_);
    status_ = other.status_;
    return *this;
  }

  cudnnBackendDescriptor_t handle() const { return handle_; }
  cudnnStatus_t status() const { return status_; }
  bool is_good() const { return status_ == CUDNN_STATUS_SUCCESS; }

  template <class T>
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
           std::span<const T> values) {
    if (!is_good()) return;
    keep(cudnn()->set_attribute(handle_, name, type, static_cast<std::int64_t>(values.size()),
                                values.data()));
  }
  template <class T>
  void set_one(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const T& value) {
    set(name, type, std::span<const T>(&value, 1));
  }
  void set_integers(cudnnBackendAttributeName_t name, const Dims& values) {
    set(name, CUDNN_TYPE_INT64, std::span<const std::int64_t>(values));
  }
  void set_part(cudnnBackendAttributeName_t name, const Descriptor& part) {
    if (is_good() && !part.is_good()) status_ = part.status();
    set_one(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, part.handle());
  }
  void finalize() {
    if (is_good()) keep(cudnn()->finalize(handle_));
  }

  /// How many there are, of at most values.size().
  template <class T>
  std::int64_t get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                   std::span<T> values) const {
    std::int64_t count = 0;
    const cudnnStatus_t status = cudnn()->get_attribute(
        handle_, name, type, static_cast<std::int64_t>(values.size()), &count, values.data());
    return status == CUDNN_STATUS_SUCCESS ? count : 0;
  }

 private:
  void keep(cudnnStatus_t status) {
    if (is_good()) status_ = status;
  }

  cudnnBackendDescriptor_t handle_ = nullptr;
  cudnnStatus_t status_ = CUDNN_STATUS_SUCCESS;
};

constexpr std::int64_t kX = 'x';
constexpr std::int64_t kW = 'w';
constexpr std::int64_t kY = 'y';

Dims strides_of(const Dims& dims, bool is_channels_last) {
  Dims strides(dims.size());
  std::int64_t step = 1;
  const auto take = [&](std::size_t axis) {
    strides[axis] = step;
    step *= dims[axis];
  };
  if (is_channels_last) take(1);
  for (std::size_t axis = dims.size(); axis-- > (is_channels_last ? 2 : 1);) take(axis);
  take(0);
  return strides;
}

Descriptor tensor(const Convolution& c, std::int64_t id, const Dims& dims) {
  constexpr std::int64_t kAlignment = 16;
  Descriptor made(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  made.set_one(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE,
               c.type == Convolution::Type::bf16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT);
  made.set_integers(CUDNN_ATTR_TENSOR_DIMENSIONS, dims);
  made.set_integers(CUDNN_ATTR_TENSOR_STRIDES, strides_of(dims, c.is_channels_last));
  made.set_one(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, id);
  made.set_one(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, kAlignment);
  made.finalize();
  return made;
}

Descriptor window(const Convolution& c) {
  Descriptor made(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  made.set_one(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64,
               static_cast<std::int64_t>(c.strides.size()));
  made.set_one(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT);
  made.set_one(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE,
               CUDNN_CROSS_CORRELATION);
  made.set_integers(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, c.pads_begin);
  made.set_integers(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, c.pads_end);
  made.set_integers(CUDNN_ATTR_CONVOLUTION_DILATIONS, c.dilations);
  made.set_integers(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, c.strides);
  made.finalize();
  return made;
}

/// What the three kinds of operation call their parts.
struct Names {
  cudnnBackendDescriptorType_t operation;
  cudnnBackendAttributeName_t alpha, beta, window, x, w, y;
};

Names names_of(Convolution::Part part) {
  switch (part) {
    case Convolution::Part::forward:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y};
    case Convolution::Part::input_gradient:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY};
    case Convolution::Part::weight_gradient:
      break;
  }
  return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY};
}

std::int64_t workspace_of(const Descriptor& plan) {
  std::int64_t bytes = 0;
  plan.get(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64,
           std::span<std::int64_t>(&bytes, 1));
  return bytes;
}

/// Whether the engine of a configuration gives the same bits each time, in the precision wanted.
bool may_be_used(const Descriptor& configuration, const Convolution& c) {
  Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t found = engine.handle();
  if (configuration.get(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                        std::span<cudnnBackendDescriptor_t>(&found, 1)) != 1) {
    return false;
  }
  std::array<cudnnBackendNumericalNote_t, CUDNN_NUMERICAL_NOTE_TYPE_COUNT> notes{};
  const std::int64_t count = engine.get(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                        std::span<cudnnBackendNumericalNote_t>(notes));
  const bool is_strict = c.type == Convolution::Type::f32 && !c.allows_tf32;
  return std::none_of(notes.begin(), notes.begin() + count, [&](auto note) {
    const bool is_rounded = note == CUDNN_NUMERICAL_NOTE_TENSOR_CORE ||
                            note == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS;
    return note == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC ||
           note == CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION || (is_strict && is_rounded);
  });
}

}  // namespace

struct CudnnPlan::Parts {
  Descriptor card;  ///< where there is no handle
  Descriptor x, w, y, window, operation, graph, plan;

  Parts(const Convolution& c, const CudnnCard& on)
      : x(tensor(c, kX, c.x)),
        w(tensor(c, kW, c.w)),
        y(tensor(c, kY, c.y)),
        window(graft::window(c)) {
    describe_card(on);
    describe_operation(c);
    graph = Descriptor(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    if (on.handle != nullptr) {
      graph.set_one(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, on.handle);
    }
    graph.set_part(CUDNN_ATTR_OPERATIONGRAPH_OPS, operation);
    graph.finalize();
  }

  void describe_card(const CudnnCard& on) {
    if (on.handle != nullptr) return;
    card = Descriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    card.set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
             std::span<const char>(on.properties));
    card.finalize();
  }

  void describe_operation(const Convolution& c) {
    const Names names = names_of(c.part);
    operation = Descriptor(names.operation);
    operation.set_one(names.alpha, CUDNN_TYPE_FLOAT, 1.0F);
    operation.set_one(names.beta, CUDNN_TYPE_FLOAT, c.adds ? 1.0F : 0.0F);
    operation.set_part(names.window, window);
    operation.set_part(names.x, x);
    operation.set_part(names.w, w);
    operation.set_part(names.y, y);
    operation.finalize();
  }

  /// Configurations of engines, the best first.
  std::vector<Descriptor> configurations(cudnnBackendHeurMode_t mode) {
    constexpr std::size_t kMost = 32;
    Descriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    heuristics.set_part(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
    heuristics.set_one(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
    if (card.handle() != nullptr) heuristics.set_part(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, card);
    heuristics.finalize();
    if (!heuristics.is_good()) return {};
    std::vector<Descriptor> found(kMost);
    std::array<cudnnBackendDescriptor_t, kMost> handles{};
    for (std::size_t i = 0; i < kMost; ++i) {
      found[i] = Descriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
      handles[i] = found[i].handle();
    }
    const std::int64_t count =
        heuristics.get(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
                       std::span<cudnnBackendDescriptor_t>(handles));
    found.resize(static_cast<std::size_t>(std::min<std::int64_t>(count, kMost)));
    return found;
  }

  Descriptor plan_of(const Descriptor& configuration, const CudnnCard& on) const {
    Descriptor made(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    if (on.handle != nullptr) {
      made.set_one(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, on.handle);
    } else {
      made.set_part(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, card);
    }
    made.set_part(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
    made.finalize();
    return made;
  }

  /// The first that takes no more memory than is usual, else the one that takes the least: the best
  /// for large images ask for gigabytes.
  bool choose(cudnnBackendHeurMode_t mode, const Convolution& c, const CudnnCard& on) {
    constexpr std::int64_t kUsualBytes = std::int64_t{256} << 20;
    std::int64_t least = 0;
    bool is_found = false;
    for (const Descriptor& configuration : configurations(mode)) {
      if (!may_be_used(configuration, c)) continue;
      Descriptor made = plan_of(configuration, on);
      if (!made.is_good()) {
        if (!is_found) plan = std::move(made);  // says why there is none
        continue;
      }
      const std::int64_t bytes = workspace_of(made);
      if (is_found && bytes >= least) continue;
      plan = std::move(made);
      least = bytes;
      is_found = true;
      if (least <= kUsualBytes) break;
    }
    return is_found;
  }

  /// The first part that could not be made.
  cudnnStatus_t status() const {
    for (const Descriptor* part : {&card, &x, &w, &y, &window, &operation, &graph, &plan}) {
      if (!part->is_good()) return part->status();
    }
    return CUDNN_STATUS_NOT_SUPPORTED;
  }
};

CudnnPlan::CudnnPlan(std::unique_ptr<Parts> parts)
    : parts_(std::move(parts)),
      workspace_bytes_(static_cast<std::size_t>(workspace_of(parts_->plan))) {}
CudnnPlan::~CudnnPlan() = default;

std::unique_ptr<const CudnnPlan> CudnnPlan::make(const Convolution& convolution,
                                                 const CudnnCard& card, std::string* why) {
  if (cudnn() == nullptr) {
    if (why != nullptr) *why = describe_cudnn();
    return nullptr;
  }
  auto parts = std::make_unique<Parts>(convolution, card);
  const bool is_made =
      parts->graph.is_good() && (parts->choose(CUDNN_HEUR_MODE_A, convolution, card) ||
                                 parts->choose(CUDNN_HEUR_MODE_FALLBACK, convolution, card));
  if (is_made) return std::unique_ptr<const CudnnPlan>(new CudnnPlan(std::move(parts)));
  if (why != nullptr) *why = cudnn()->status_text(parts->status());
  return nullptr;
}

cudnnStatus_t CudnnPlan::run(cudnnHandle_t handle, const void* x, const void* w, const void* y,
                             void* workspace) const {
  const std::array<std::int64_t, 3> ids{kX, kW, kY};
  const std::array<void*, 3> addresses{const_cast<void*>(x), const_cast<void*>(w),
                                       const_cast<void*>(y)};
  Descriptor call(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  call.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64,
           std::span<const std::int64_t>(ids));
  call.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR,
           std::span<void* const>(addresses));
  call.set_one(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace);
  call.finalize();
  if (!call.is_good()) return call.status();
  return cudnn()->execute(handle, parts_->plan.handle(), call.handle());
}

}  // namespace graft
