#pragma once

namespace graft::emulated {

/// Notes that a kernel runs (`kernels_run`): one of ours, or a twin of a library's.
void count_kernel();

}  // namespace graft::emulated
