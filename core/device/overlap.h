#pragma once

#include <cstddef>
#include <memory>

#include "core/device/device.h"

namespace graft {

/// The orders in which an overlapping device does what it is given.
enum class Stream {
  work,     ///< of all that Device's functions give it
  uploads,  ///< of copies beside that
};

/// A point in these orders, as an event of CUDA. One that was never set is reached.
class Event {
 public:
  virtual ~Event() = default;
  Event() = default;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  /// Moves it behind all that the stream has been given so far.
  virtual void set(Stream stream) = 0;
  /// What the stream is given from now on waits for it.
  virtual void hold(Stream stream) = 0;
  /// Returns when it is reached; throws what went wrong on the device.
  virtual void wait() = 0;
  /// The same where nothing may be thrown: what went wrong, the next who waits is told.
  virtual void settle() noexcept = 0;
};

/// What a device offers that may still be at its work when a call returns.
class Overlap {
 public:
  virtual ~Overlap() = default;
  Overlap() = default;
  Overlap(const Overlap&) = delete;
  Overlap& operator=(const Overlap&) = delete;

  virtual std::unique_ptr<Event> make_event() = 0;
  /// As Device::copy_async, in Stream::uploads.
  virtual void upload(void* target, const void* source, std::size_t bytes) = 0;
};

/// Null for a device that has done all when a call returns, as the CPU.
inline Overlap* find_overlap(Device& device) {
  return dynamic_cast<Overlap*>(&device);
}

}  // namespace graft
