#pragma once

namespace graft {

/// Whether the processor says that it multiplies by tiles (AMX).
bool claims_amx() noexcept;
/// Whether it says how large its tiles are, without which none can be set up. Some virtual machines
/// claim AMX and hide that.
bool shows_amx_tiles() noexcept;

/// Whether kernels may multiply bf16 by tiles: a process may once the system grants it their state,
/// which the first call asks for.
bool may_use_amx();

/// Whether kernels multiply bf16 faster than f32: by tiles, or by the instructions of AVX-512 BF16
/// where these are AMD's. Intel's multiply as many numbers a cycle as those of f32.
bool multiplies_bf16_faster();

}  // namespace graft
