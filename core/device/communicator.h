#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace graft {

/// Processes that train one model together: each is a rank, from 0 to size - 1. Every call but
/// `rank` and those like it is made by all ranks, in the same order, and ends when all have made
/// it; all then have the same bits. A rank that fails must not let the others wait: it calls
/// `abort`. Not for use by two threads at once.
class Communicator {
 public:
  virtual ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// How many of the ranks run on this rank's machine, which they share.
  virtual int local_size() const { return size(); }

  /// Each element becomes its sum over all ranks, which give as many.
  virtual void all_reduce(std::span<float> values) = 0;
  virtual void all_reduce(std::span<double> values) = 0;
  /// All ranks get the bytes of rank `root`.
  virtual void broadcast(std::span<std::byte> bytes, int root) = 0;
  /// Each rank gets one piece from each rank, in their order: of `sent`, which is cut into as many
  /// equal pieces as there are ranks, that of its own number. Broadcasts do it where a library has
  /// nothing better.
  virtual void all_to_all(std::span<const std::byte> sent, std::span<std::byte> received);
  /// Of `all`, cut in the same way, each rank gives the piece of its number to the others.
  virtual void all_gather(std::span<std::byte> all);
  /// Waits until all ranks have come here.
  virtual void barrier() = 0;

  /// Ends the processes of all ranks, this one last, with that exit code. No other rank need call
  /// it.
  [[noreturn]] virtual void abort(int code) = 0;

  /// Under which nodes of a graph name it; no other that lives has the same.
  std::int64_t id() const { return id_; }

 protected:
  Communicator();
  /// Of `alone()`.
  explicit Communicator(std::int64_t id) : id_(id) {}

 private:
  std::int64_t id_;
};

/// Of a process that trains alone. Its id is 0.
Communicator& alone();

/// `alone()` where there is none.
Communicator& or_alone(const std::shared_ptr<Communicator>& communicator);

/// The one of that id, which lives.
Communicator& communicator_of(std::int64_t id);

}  // namespace graft
