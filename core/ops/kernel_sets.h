#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/base/isa.h"
#include "core/ops/kernel.h"

namespace graft {

class KernelRegistry;
class OpRegistry;

/// A file that holds rows or kernels, and the call that registers them.
template <class Registry>
struct RegisteredFile {
  std::string_view name;  ///< without folder and ending: "conv", "conv_cpu"
  void (*add_to)(Registry& registry);
};

/// The files of rows that this build has, in the order of their calls (adr/0075).
std::span<const RegisteredFile<OpRegistry>> row_files();

/// The CPU's kernels, compiled for one set of instructions, and those of all other devices.
struct KernelSet {
  Isa isa;
  /// In the order in which candidates are asked.
  std::span<const RegisteredFile<KernelRegistry>> files;
  /// What makes kernels for f16 and bf16 of those for f32 (as_f32_internal.h).
  RunFunction (*run_as_f32)(const Node& node, Device& device);
  PreparedKernel (*prepare_as_f32)(const Node& node, Device& device);
};

/// Those of this build, in rising order (adr/0043): one, or in a portable build for x86-64 several.
std::span<const KernelSet> kernel_sets();

/// The one that runs: the best for this processor, or that named by the environment variable
/// GRAFT_ISA. Throws what choose_isa throws.
const KernelSet& chosen_kernel_set();

/// "avx2, the best for this processor, of baseline, avx2, avx512". Throws as chosen_kernel_set.
std::string describe_kernel_sets();

}  // namespace graft
