#pragma once

#include <cstddef>
#include <cstdint>

/// The machine that thresholds and blocks assume: a server core for x86-64 of 2017 or later. They
/// are constants and not what a processor says of itself, because blocks decide in which order sums
/// are taken: a model trains to the same bits on every machine of one instruction set (adr/0044).
namespace graft {

/// What one prefetch brings: 64 on every x86-64 and nearly every AArch64.
inline constexpr std::int64_t kCacheLineBytes = 64;
/// First-level data cache of a core: 32 KiB (Zen to Zen 4, Skylake) to 48 KiB (Ice Lake, Zen 5).
inline constexpr std::int64_t kFirstCacheBytes = std::int64_t{32} << 10;
/// Second-level cache of a core: 0.5 MiB (Zen to Zen 3), 1 (Skylake-SP, Zen 4 and 5), 2 (Sapphire
/// Rapids).
inline constexpr std::int64_t kSecondCacheBytes = std::int64_t{1} << 20;
/// Multiply-adds of f32 that take as long as a byte from memory: a core computes some 80 G of them
/// a second in a large product (AVX-512) and gets some 5 GB while all cores ask.
inline constexpr double kMultiplyAddsAByte = 16.0;

// Elements that a thread needs at least, or it is not woken for them. To wake a team costs 5 to 50
// microseconds; 16384 floats read and written once take some 10.

/// Of loops that do an operation or two an element.
inline constexpr std::int64_t kElementwiseGrain = 16384;
/// Of loops that pass over an element several times, as norms do, or read it from many places.
inline constexpr std::int64_t kRowwiseGrain = 8192;

}  // namespace graft
