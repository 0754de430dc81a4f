#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>

#include "core/ops/kernels/lanes.h"

namespace graft {

/// Numbers of a vector of a tile: one or several registers.
inline constexpr int kTileLanes = 16;
inline constexpr bool kHasWideRegisters = kRegisterLanes == kTileLanes;
/// Those of AVX2: two fill a vector.
inline constexpr bool kHasHalfRegisters = 2 * kRegisterLanes == kTileLanes;
/// Most vectors that a row of a tile should have: with six rows their sums leave registers for
/// what is multiplied.
inline constexpr int kMostTileVectors = kHasWideRegisters ? 4 : 1;
/// Registers that a vector fills.
inline constexpr int kVectorRegisters = kTileLanes / kRegisterLanes;

/// That so many numbers fill, the last perhaps in part.
inline std::int64_t registers_of(std::int64_t numbers) {
  return (numbers + kRegisterLanes - 1) / kRegisterLanes;
}

/// Whether they leave at most an eighth of these empty.
inline bool fill_registers(std::int64_t numbers) {
  return 7 * registers_of(numbers) * kRegisterLanes <= 8 * numbers;
}

/// v, which the compiler then keeps in a register. Left to itself GCC reads what several
/// instructions use from memory in each, and loads bound a loop of multiply-adds.
template <class V>
V in_register(V v) {
#if defined(__x86_64__)
  asm("" : "+v"(v));
#elif defined(__aarch64__)
  asm("" : "+w"(v));
#endif
  return v;
}

/// Sums of products that stay in registers: `rows` rows of `vectors` vectors. Of the last one just
/// the numbers in the first `last` registers, where the others are not wanted.
template <int rows, int vectors, int last = kVectorRegisters>
class RegisterTile {
 public:
  /// Row r takes in factor(r) times the numbers at `from`.
  template <class Factor>
  void add(const float* from, Factor&& factor) {
    Register row[kColumns];
    unroll<kColumns>(
        [&]<int i>() { row[i] = in_register(load<kRegisterLanes>(from + i * kRegisterLanes)); });
    unroll<rows>([&]<int r>() {
      const float number = factor(r);
      unroll<kColumns>([&]<int i>() { sums_[r][i] += number * row[i]; });
    });
  }

  /// Writes finish(row r) to to(r), with `adds` added to what is there.
  template <bool adds, class To, class Finish = std::identity>
  void write(To&& to, const Finish& finish = {}) const {
    unroll<rows>([&]<int r>() {
      float* const row = to(r);
      unroll<kColumns>([&]<int i>() {
        float* const at = row + i * kRegisterLanes;
        store(at, finish(adds ? load<kRegisterLanes>(at) + sums_[r][i] : sums_[r][i]));
      });
    });
  }

  /// Writes finish(numbers at from(r) + row r) to to(r), `width` of them: more than all vectors but
  /// the last have.
  template <class From, class To, class Finish>
  void write_sum(std::int64_t width, From&& from, To&& to, const Finish& finish) const {
    if (width == kColumns * kRegisterLanes) {
      write_columns<kColumns>(from, to, finish);
      return;
    }
    constexpr std::int64_t kWhole = (vectors - 1) * kTileLanes;
    constexpr int kWholeColumns = kWhole / kRegisterLanes;
    write_columns<kWholeColumns>(from, to, finish);
    float rest[rows][kTileLanes];
    unroll<rows>([&]<int r>() {
      unroll<last>(
          [&]<int i>() { store(rest[r] + i * kRegisterLanes, sums_[r][kWholeColumns + i]); });
    });
    for (int r = 0; r < rows; ++r) {  // few instructions: else the sums would leave their registers
      const float* const start = from(r) + kWhole;
      float* const end = to(r) + kWhole;
      for_each_lanes(width - kWhole, [&]<int lanes>(std::int64_t i) {
        store(end + i, finish(load<lanes>(start + i) + load<lanes>(rest[r] + i)));
      });
    }
  }

 private:
  using Register = Lanes<kRegisterLanes>;
  static constexpr int kColumns = (vectors - 1) * kVectorRegisters + last;

  template <int columns, class From, class To, class Finish>
  void write_columns(From&& from, To&& to, const Finish& finish) const {
    unroll<rows>([&]<int r>() {
      const float* const start = from(r);
      float* const end = to(r);
      unroll<columns>([&]<int i>() {
        constexpr int kAt = i * kRegisterLanes;
        store(end + kAt, finish(load<kRegisterLanes>(start + kAt) + sums_[r][i]));
      });
    });
  }

  Register sums_[rows][kColumns] = {};
};

/// Calls body.operator()<count>() for a count of 1 to `most`.
template <int most, class Body>
void with_count(std::int64_t count, Body&& body) {
  unroll<most>([&]<int fewer>() {
    if (count == most - fewer) body.template operator()<most - fewer>();
  });
}

/// Calls body.operator()<rows>(first) for rows in [0, count): as few tiles of at most `most` as
/// there can be, of about one size, since few rows leave too few sums to hide how long an addition
/// takes.
template <int most, class Body>
void for_each_row_tile(std::int64_t count, Body&& body) {
  const std::int64_t tiles = (count + most - 1) / most;
  std::int64_t first = 0;
  for (std::int64_t tile = 1; tile <= tiles; ++tile) {
    const std::int64_t end = count * tile / tiles;
    with_count<most>(end - first, [&]<int rows>() { body.template operator()<rows>(first); });
    first = end;
  }
}

}  // namespace graft
