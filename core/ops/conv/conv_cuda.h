#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace graft {

/// The sizes of an image [batch, channels, plane] whose spatial axes are taken as one.
struct ChannelPlanes {
  std::int64_t batch;
  std::int64_t channels;
  std::int64_t plane;
};

// What libraries leave to do round a convolution; of float and BFloat16, which is summed in f32.

/// y += bias, one number a channel.
template <class T>
void add_to_channels(const ChannelPlanes& y, const T* bias, T* data, cudaStream_t stream);

/// db: the sum of dy but for channels.
template <class T>
void sum_channels(const ChannelPlanes& dy, const T* data, T* db, cudaStream_t stream);

}  // namespace graft
