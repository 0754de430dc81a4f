#include "core/ops/kernel_sets.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

namespace graft {
namespace {

std::string_view wanted_name() {
  const char* const wanted = std::getenv("GRAFT_ISA");
  return wanted == nullptr ? "" : wanted;
}

}  // namespace

const KernelSet& chosen_kernel_set() {
  std::vector<Isa> built;
  for (const KernelSet& set : kernel_sets()) built.push_back(set.isa);
  const Isa chosen = choose_isa(built, best_isa(read_cpuid()), wanted_name());
  return *std::ranges::find(kernel_sets(), chosen, &KernelSet::isa);
}

std::string describe_kernel_sets() {
  std::string chosen(name(chosen_kernel_set().isa));
  if (kernel_sets().size() == 1) return chosen + ", the only ones of this build";
  std::string all;
  for (const KernelSet& set : kernel_sets()) {
    all += (all.empty() ? "" : ", ") + std::string(name(set.isa));
  }
  const char* const why =
      wanted_name().empty() ? "the best for this processor" : "as GRAFT_ISA says";
  return chosen + ", " + why + ", of " + all;
}

}  // namespace graft
