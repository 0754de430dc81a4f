#include <sched.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "core/base/parallel.h"
#include "core/base/regex.h"
#include "core/device/cuda_devices.h"
#include "core/device/device.h"
#include "core/device/mpi_communicator.h"
#include "core/ops/kernel_sets.h"
#include "core/ops/libraries.h"
#include "data/mnist.h"
#include "graft/version.h"
#include "tools/graft/cgroup.h"
#include "tools/graft/format_internal.h"
#include "tools/graft/machine.h"
#include "tools/graft/options.h"
#include "tools/graft/settings.h"
#include "tools/graft/summary.h"
#include "tools/graft/verb.h"

namespace graft::cli {
namespace {

struct Finding {
  std::string title;
  std::string text;
  /// What to do about it; empty where all is well.
  std::string advice = {};
};

#if defined(__AVX512F__)
constexpr std::string_view kTarget = "avx512";
#elif defined(__AVX2__)
constexpr std::string_view kTarget = "avx2";
#else
constexpr std::string_view kTarget = "any CPU of its kind";
#endif

Finding find_build() {
#ifdef NDEBUG
  const char* const kind = "release";
  const char* const advice = "";
#else
  const char* const kind = "debug";
  const char* const advice = "for speed, build with the preset release";
#endif
#ifdef __clang__
  const char* const compiler = "clang " __clang_version__;
#else
  const char* const compiler = "g++ " __VERSION__;
#endif
  return {"build",
          text("Graft ", kVersion, ", ", kind, ", compiled for ", kTarget, " by ", compiler),
          advice};
}

Finding find_onednn() {
  const std::string found = onednn_description();
  if (!found.empty()) return {"oneDNN", found};
  return {"oneDNN", "not in this build",
          "products are slower without it: run scripts/setup, "
          "configure with -DGRAFT_WITH_ONEDNN=ON"};
}

Finding find_re2() {
  try {
    const Regex probe("a");
    return {"RE2", "found: --trainable and --freeze take patterns"};
  } catch (const Error&) {
    return {"RE2", "not in this build", "patterns need it: configure with -DGRAFT_WITH_RE2=ON"};
  }
}

std::string cpu_features() {
  std::string found;
#if defined(__x86_64__)
  const auto add = [&](const char* name, bool has) {
    if (has) found += (found.empty() ? "" : " ") + std::string(name);
  };
  add("avx2", __builtin_cpu_supports("avx2") != 0);
  add("fma", __builtin_cpu_supports("fma") != 0);
  add("avx512f", __builtin_cpu_supports("avx512f") != 0);
  add("avx512bw", __builtin_cpu_supports("avx512bw") != 0);
  add("avx512vnni", __builtin_cpu_supports("avx512vnni") != 0);
  add("avx512bf16", __builtin_cpu_supports("avx512bf16") != 0);
#endif
  return found.empty() ? "not known" : found;
}

Finding find_cpu() {
  return {"CPU", cpu().description() + "; " + cpu_features()};
}

/// What they are compiled for, and how that was chosen.
Finding find_kernels() {
  try {
    const Isa used = chosen_kernel_set().isa;
    Finding finding{"kernels", "for " + describe_kernel_sets()};
    const Isa best = best_isa(read_cpuid());
    if (kernel_sets().size() > 1 ? used < best : best == Isa::avx512 && kTarget != "avx512") {
      finding.advice = text("this CPU runs ", name(best), ": ",
                            kernel_sets().size() > 1 ? "leave out GRAFT_ISA for speed"
                                                     : "configure with -DGRAFT_NATIVE=ON");
    }
    return finding;
  } catch (const Error& error) {
    return {"kernels", "none: nothing can run", error.what()};
  }
}

Finding find_threads(const CgroupLimits& limits) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  sched_getaffinity(0, sizeof(allowed), &allowed);
  Finding finding{"threads",
                  text(thread_count(), " by default; the process may run on ", CPU_COUNT(&allowed),
                       " of ", sysconf(_SC_NPROCESSORS_ONLN), " cores")};
  if (!limits.cores) return finding;
  finding.text += text("; its control group gives it the time of ", *limits.cores);
  if (*limits.cores < thread_count()) {
    finding.advice = text("threads will wait for each other: give --threads ",
                          std::max(1.0, std::floor(*limits.cores)));
  }
  return finding;
}

Finding find_memory(const CgroupLimits& limits) {
  struct sysinfo info {};
  sysinfo(&info);
  const std::uint64_t all = static_cast<std::uint64_t>(info.totalram) * info.mem_unit;
  Finding finding{"memory", bytes_text(all)};
  if (limits.memory_bytes && *limits.memory_bytes < all) {
    finding.text += ", of which its control group gives it " + bytes_text(*limits.memory_bytes);
  }
  return finding;
}

Finding find_devices() {
  std::vector<std::string> names;
  for (const Device* device : devices()) names.push_back(device->name());
  const std::string why = why_no_cuda();
  return {"devices", joined(names) + (why.empty() ? "" : "; " + why)};
}

Finding find_mpi() {
  const std::string library = mpi_library();
  return {"ranks", library.empty() ? "this build has no MPI, so it trains in one process; see "
                                     "docs/cluster.md"
                                   : library};
}

Finding find_data() {
  const std::filesystem::path folder = kFashionMnistFolder;
  std::error_code ignored;
  if (std::filesystem::exists(folder, ignored))
    return {"data", text("fashion-mnist in ", kFashionMnistFolder)};
  return {"data", "fashion-mnist is not there",
          "install Debian's dataset-fashion-mnist, or name a folder: --data fashion-mnist:DIR"};
}

Finding find_disk() {
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(".", error);
  const bool is_writable = access(".", W_OK) == 0;
  return {"this folder", error ? error.message() : bytes_text(space.available) + " free",
          is_writable ? "" : "it cannot be written; give --out in one that can"};
}

Finding find_terminal() {
  const bool is_terminal = isatty(STDERR_FILENO) == 1;
  const char* const no_color = std::getenv("NO_COLOR");
  return {"terminal",
          text(is_terminal ? "progress is drawn" : "stderr is no terminal: a line an epoch",
               no_color != nullptr && *no_color != '\0' ? ", without colour (NO_COLOR)" : "")};
}

/// Variables that begin with GRAFT_: those that set options, and those that set none.
Finding find_environment(const CLI::App& root) {
  std::string used;
  std::string unused;
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string line = *at;
    if (!line.starts_with("GRAFT_")) continue;
    const std::string name = line.substr(0, line.find('='));
    bool is_option = name == "GRAFT_ISA";
    for (const CLI::App* verb : verbs_of(root)) {
      for (const CLI::Option* option : verb->get_options()) {
        const std::vector<std::string> names = environment_names(verb->get_name(), *option);
        is_option = is_option || std::ranges::find(names, name) != names.end();
      }
    }
    (is_option ? used : unused) += ' ' + (is_option ? line : name);
  }
  return {"environment", used.empty() ? "no variable sets an option" : "sets options:" + used,
          unused.empty() ? "" : "no option is called so:" + unused};
}

std::vector<Finding> examine(const CLI::App& root) {
  const CgroupLimits limits = read_cgroup_limits();
  return {find_build(),
          find_cpu(),
          find_kernels(),
          {"speed", short_count(measure_fma_peak()) + "FLOP/s in f32 on all threads"},
          find_threads(limits),
          find_memory(limits),
          find_onednn(),
          find_re2(),
          find_devices(),
          find_mpi(),
          find_data(),
          find_disk(),
          find_terminal(),
          find_environment(root)};
}

}  // namespace

Run add_doctor(CLI::App& app) {
  const auto as_json = std::make_shared<bool>(false);
  app.add_flag("--json", *as_json, "print a JSON line a finding");
  return [as_json, &app] {
    Summary table;
    for (const Finding& finding : examine(*app.get_parent())) {
      if (*as_json) {
        print_json({{"name", finding.title}, {"found", finding.text}, {"advice", finding.advice}});
      }
      table.row(finding.title, finding.text);
      if (!finding.advice.empty()) table.row("", "! " + finding.advice);
    }
    if (!*as_json) table.print(std::cout);
    return ok;
  };
}

}  // namespace graft::cli
