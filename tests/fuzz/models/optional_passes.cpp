#include "tests/fuzz/models/optional_passes.h"

#include <algorithm>
#include <iterator>
#include <span>

namespace graft::fuzz {
namespace {

// What graphs need to be computed at all, and the list that holds rewrites which are left out one
// by one. A pass that is added is optional until it is named here.
constexpr std::string_view kNeeded[] = {
    "upgrade_opset",   "inference_mode", "train_mode",
    "bind_inputs",     "infer_shapes",   "fold_constants",
    "choose_branches", "unroll_loops",   "unroll_recurrent",
    "eliminate_dead",  "settle",         "unrolled",
    "decompose",       "forward",        "decompose_where_needed"};

constexpr std::string_view kKeepsBits[] = {"fuse_chains", "fuse_updates", "move_updates"};

bool is_one_of(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

std::vector<std::string_view> optional_passes(const passes::PassWatch& watch) {
  std::vector<std::string_view> optional;
  std::ranges::copy_if(watch.changed(), std::back_inserter(optional),
                       [](std::string_view name) { return !is_one_of(kNeeded, name); });
  return optional;
}

bool keeps_bits(std::string_view pass) {
  return is_one_of(kKeepsBits, pass);
}

}  // namespace graft::fuzz
