// docs/ops.md, from the registry.
//   ops_page              prints the page: build/tests/ops_page > docs/ops.md
//   ops_page --check FILE fails when FILE is not that page
#include <algorithm>
#include <array>
#include <fstream>
#include <iostream>
#include <iterator>
#include <set>
#include <sstream>

#include "core/base/error.h"
#include "core/ops/registry.h"
#include "tests/sweep/sample_graph.h"

namespace graft::test {
namespace {

constexpr std::array kTypes{DType::f32, DType::f64, DType::f16,     DType::bf16,  DType::i8,
                            DType::i16, DType::i32, DType::i64,     DType::u8,    DType::u16,
                            DType::u32, DType::u64, DType::boolean, DType::string};

/// Whether a kernel takes the sample with `type` for its elements.
bool is_taken(const OpDef& def, const Sample& sample, DType type) {
  try {
    const SampleGraph built = make_sample_graph(def, sample, type);
    return !prepare_all_kernels(*built.node, cpu()).empty();
  } catch (const Error&) {
    return false;  // inference refuses the type
  }
}

/// Of the elements that the op computes on: the first input's, or the first output's without one.
std::set<DType> cpu_types(const OpDef& def) {
  constexpr int kFloatSamples = 3;  // enough to meet a plain case
  std::set<DType> types;
  int tried = 0;
  for (const Sample& sample : def.samples()) {
    const bool has_input = !sample.inputs.empty() && !sample.inputs.front().is_absent;
    const DType own = has_input ? sample.inputs.front().dtype : DType::f32;
    if (own != DType::f32) {
      if (!types.contains(own) && is_taken(def, sample, DType::f32)) types.insert(own);
    } else if (tried++ < kFloatSamples) {
      for (const DType type : kTypes) {
        if (!types.contains(type) && is_taken(def, sample, type)) types.insert(type);
      }
    }
  }
  return types;
}

bool is_view(const OpDef& def) {
  return std::ranges::any_of(def.aliases,
                             [](const Alias& alias) { return alias.kind == AliasKind::view; });
}

std::string types_text(const OpDef& def) {
  if (is_view(def)) return "any (a view)";
  if (def.is_dynamic) return "between plans";
  const std::set<DType> types = cpu_types(def);
  std::string result;
  for (const DType type : kTypes) {
    if (types.contains(type)) result += text(result.empty() ? "" : " ", type);
  }
  if (!result.empty()) return result;
  return def.backward.decomposition() != nullptr ? "as its parts" : "none alone";
}

std::string versions_text(const OpDef& def) {
  std::string result;
  for (const Since& since : def.since) result += text(result.empty() ? "" : " ", since.version);
  return result;
}

std::string gradient_text(const OpDef& def) {
  const NotDifferentiable* const refusal = def.backward.refusal();
  return refusal == nullptr ? std::string(def.backward.kind()) : text("none: ", refusal->why);
}

void print_domain(std::ostream& out, std::string_view domain) {
  std::vector<const OpDef*> rows;
  for (const OpDef& def : OpRegistry::instance().all()) {
    if (def.domain == domain) rows.push_back(&def);
  }
  std::ranges::sort(rows, {}, [](const OpDef* def) { return def->name; });
  out << "\n## " << (domain.empty() ? "ai.onnx" : domain) << " (" << rows.size() << ")\n\n"
      << "| op | versions | CPU types | gradient | samples |\n|---|---|---|---|---|\n";
  for (const OpDef* def : rows) {
    out << "| " << def->name << " | " << versions_text(*def) << " | " << types_text(*def) << " | "
        << gradient_text(*def) << " | " << def->samples().size() << " |\n";
  }
}

/// Ops that a CUDA kernel takes, of all domains.
std::string cuda_text() {
  std::string names;
  for (const OpDef& def : OpRegistry::instance().all()) {
    if (KernelRegistry::instance().find(DeviceKind::cuda, def.name, def.domain).empty()) continue;
    names += text(names.empty() ? "" : ", ", def.name);
  }
  return names.empty() ? "This build has no CUDA kernels (gpu.md)."
                       : text("With a CUDA kernel: ", names, ".");
}

std::string page() {
  std::set<std::string_view> domains;
  for (const OpDef& def : OpRegistry::instance().all()) domains.insert(def.domain);
  std::ostringstream out;
  out << "# Ops\n\n"
         "Made from the registry by `build/tests/ops_page > docs/ops.md`; a test fails when it is\n"
         "stale. Versions: the opsets that changed the op; models from opset 1 to "
      << kNewestOpset
      << "\nare brought to the newest form. CPU types: element types that a kernel takes in a\n"
         "sample. "
      << cuda_text()
      << " Gradient: a rule, a decomposition into other ops, or why\n"
         "there is none. Samples: cases on which the sweep tests values, gradients and aliasing.\n"
         "The ops of ai.graft are internal: they never reach a file.\n";
  for (const std::string_view domain : domains) print_domain(out, domain);
  return out.str();
}

int check(const char* file) {
  std::ifstream in(file);
  const std::string found{std::istreambuf_iterator<char>(in), {}};
  if (found == page()) return 0;
  std::cerr << file << " is stale: build/tests/ops_page > docs/ops.md\n";
  return 1;
}

}  // namespace
}  // namespace graft::test

int main(int count, char** arguments) {
  if (count == 3 && std::string_view(arguments[1]) == "--check") {
    return graft::test::check(arguments[2]);
  }
  std::cout << graft::test::page();
  return 0;
}
