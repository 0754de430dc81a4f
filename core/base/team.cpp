#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <cassert>
#include <chrono>
#include <system_error>
#include <utility>

#include "core/base/at.h"
#include "core/base/error.h"
#include "core/base/float_control_internal.h"
#include "core/base/held_signals.h"
#include "core/base/team_internal.h"

namespace graft {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint32_t kLeaderSleeps = 1U << 31;

/// What the calling thread runs.
struct Place {
  Team* team = nullptr;
  int piece = 0;
  int pieces = 1;
};
thread_local Place place;

std::atomic<int> forks = 0;

void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

/// Asks ready() for a moment; whether it came true. Between loops of one step mostly less than 100
/// us pass, and to wake a sleeper takes 5 to 50 us. The processor is offered to others now and
/// then: where one of them took it, to go on would be at its cost, and at ours, who may wait for
/// it.
template <class Ready>
bool spin_until(Ready ready) {
  constexpr int kAsksBetween = 16;
  constexpr auto kLongest = std::chrono::microseconds(500);
  constexpr auto kAlone = std::chrono::microseconds(10);
  constexpr auto kYieldToNobody = std::chrono::microseconds(20);
  const Clock::time_point start = Clock::now();
  for (;;) {
    for (int i = 0; i < kAsksBetween; ++i) {
      if (ready()) return true;
      pause();
    }
    const Clock::time_point now = Clock::now();
    if (now - start > kLongest) return false;
    if (now - start < kAlone) continue;
    sched_yield();
    if (Clock::now() - now > kYieldToNobody) return ready();
  }
}

}  // namespace

Team& Team::own() {
  static const int registered = pthread_atfork(nullptr, nullptr, [] { ++forks; });
  static_cast<void>(registered);
  thread_local std::unique_ptr<Team> team;
  if (team == nullptr || team->forks_ != forks) team = std::make_unique<Team>();
  return *team;
}

bool Team::is_within() {
  return place.team != nullptr;
}

int Team::piece() {
  return place.piece;
}

int Team::pieces() {
  return place.pieces;
}

Team::Team() : forks_(forks) {}

Team::~Team() {
  if (forks_ != forks) {  // its workers stayed in the parent: nothing can end them here
    for (auto& seat : seats_) static_cast<void>(seat.release());
    return;
  }
  for (const auto& seat : seats_) {
    if (seat->offer.exchange(Offer::leave) == Offer::none_and_asleep) seat->offer.notify_one();
  }
  for (const auto& seat : seats_) seat->worker.join();
}

void Team::run(int pieces, Body body, void* context) {
  open(pieces, body, context);
  body(context, 0);
  close();
}

void Team::open(int pieces, Body body, void* context) {
  assert(!is_within() && pieces >= 1);
  hire(pieces - 1);
  body_ = body;
  context_ = context;
  pieces_ = pieces;
  float_control_ = float_control();
  unfinished_.store(static_cast<std::uint32_t>(pieces - 1), std::memory_order_relaxed);
  for (int i = 1; i < pieces; ++i) {
    Seat& seat = *at(seats_, i - 1);
    if (seat.offer.exchange(Offer::piece) == Offer::none_and_asleep) seat.offer.notify_one();
  }
  place = {this, 0, pieces};
}

void Team::close() {
  for (int i = 1; i < pieces_; ++i) take_and_run(*at(seats_, i - 1), i);
  await_others();
  place = {};
}

bool Team::take_and_run(Seat& seat, int piece) {
  Offer wanted = Offer::piece;
  if (seat.offer.load(std::memory_order_relaxed) != Offer::piece ||
      !seat.offer.compare_exchange_strong(wanted, Offer::none)) {
    return false;
  }
  place = {this, piece, pieces_};
  if (float_control() != float_control_) set_float_control(float_control_);
  body_(context_, piece);
  // From here on the leader may settle other work.
  if (unfinished_.fetch_sub(1) == (kLeaderSleeps | 1U)) unfinished_.notify_one();
  return true;
}

void Team::await_others() {
  const auto is_done = [&] { return unfinished_.load(std::memory_order_acquire) == 0; };
  if (is_done() || spin_until(is_done)) return;
  std::uint32_t left = unfinished_.fetch_or(kLeaderSleeps) | kLeaderSleeps;
  while (left != kLeaderSleeps) {
    unfinished_.wait(left);
    left = unfinished_.load(std::memory_order_acquire);
  }
}

void Team::barrier() {
  if (place.team == nullptr || place.pieces == 1) return;
  Team& team = *place.team;
  const std::uint32_t passed = team.barriers_passed_.load();
  if (team.arrived_.fetch_add(1) + 1 == static_cast<std::uint32_t>(place.pieces)) {
    team.arrived_.store(0);
    team.barriers_passed_.fetch_add(1);
    team.barriers_passed_.notify_all();
    return;
  }
  const auto is_passed = [&] { return team.barriers_passed_.load() != passed; };
  if (!spin_until(is_passed)) team.barriers_passed_.wait(passed);
}

void Team::hire(int workers) {
  while (seats_.size() < static_cast<std::size_t>(workers)) {
    auto seat = std::make_unique<Seat>();
    const int piece = static_cast<int>(seats_.size()) + 1;
    seats_.reserve(static_cast<std::size_t>(workers));
    try {
      seat->worker = std::thread([this, piece, mine = seat.get()] { work(*mine, piece); });
    } catch (const std::system_error& error) {
      fail(ErrorKind::memory, "cannot start thread ", piece + 1, " of ", workers + 1, ": ",
           error.what(), "; set a lower thread count");
    }
    seats_.push_back(std::move(seat));
  }
}

void Team::work(Seat& seat, int piece) {
  hold_signals_of_thread();
  const auto has_offer = [&] { return seat.offer.load(std::memory_order_relaxed) != Offer::none; };
  for (;;) {
    if (!spin_until(has_offer)) {
      Offer wanted = Offer::none;
      if (seat.offer.compare_exchange_strong(wanted, Offer::none_and_asleep)) {
        seat.offer.wait(Offer::none_and_asleep);
      }
    }
    if (seat.offer.load(std::memory_order_acquire) == Offer::leave) return;
    take_and_run(seat, piece);
  }
}

}  // namespace graft
