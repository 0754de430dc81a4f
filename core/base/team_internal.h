#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

namespace graft {

/// The threads behind parallel loops, Graft's and oneDNN's: one that hands out work, the leader,
/// and workers of its own, which wait for it. Who waits spins for a moment, as what comes next
/// mostly comes at once, and then sleeps; at once if it sees that others want the processor.
///
/// Each worker has a seat. open() offers a piece of work at each; a worker takes what is offered at
/// its own, so that a piece stays with its thread and what that has in its cache. Once the leader
/// has done its own piece, it takes what is still offered: on a busy machine no loop waits for a
/// thread that has not run yet.
class Team {
 public:
  using Body = void (*)(void* context, int piece);

  /// The calling thread's: made at first use, and again in the child of a fork.
  static Team& own();
  /// Whether the calling thread runs a piece of any team.
  static bool is_within();
  /// The piece that the calling thread runs, and of how many; 0 of 1 outside.
  static int piece();
  static int pieces();

  Team();
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  /// Calls body(context, piece) for each piece of [0, pieces), and waits. Not from within a piece.
  void run(int pieces, Body body, void* context);

  /// run() in parts: the caller becomes piece 0 and does its work between the two calls. Others may
  /// wait for it by barrier(), since each piece that waits holds a thread of its own.
  void open(int pieces, Body body, void* context);
  void close();
  /// From within a piece: waits for all others.
  static void barrier();

 private:
  enum class Offer : std::uint32_t { none, none_and_asleep, piece, leave };
  struct alignas(64) Seat {
    std::atomic<Offer> offer = Offer::none;
    std::thread worker;
  };

  void hire(int workers);
  void work(Seat& seat, int piece);
  bool take_and_run(Seat& seat, int piece);
  void await_others();

  std::vector<std::unique_ptr<Seat>> seats_;
  const int forks_;  // of this process before the team was made

  // The work in hand, settled before it is offered.
  Body body_ = nullptr;
  void* context_ = nullptr;
  int pieces_ = 1;
  std::uint64_t float_control_ = 0;  // the leader's, for all pieces

  alignas(64) std::atomic<std::uint32_t> unfinished_ = 0;  // pieces of others; kLeaderSleeps
  alignas(64) std::atomic<std::uint32_t> arrived_ = 0;     // at the barrier
  std::atomic<std::uint32_t> barriers_passed_ = 0;
};

}  // namespace graft
