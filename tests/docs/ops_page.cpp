// docs/ops.md, from the registry.
//   ops_page FILE         writes the page: build/tests/ops_page docs/ops.md
//   ops_page --check FILE fails when FILE is not that page
// What kernels of cards take, a build without CUDA cannot know: it keeps what FILE says of that.
#include <algorithm>
#include <array>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <vector>

#include "core/base/error.h"
#include "core/ops/registry.h"
#include "tests/sweep/sample_graph.h"

namespace graft::test {
namespace {

constexpr std::array kTypes{DType::f32, DType::f64, DType::f16,     DType::bf16,  DType::i8,
                            DType::i16, DType::i32, DType::i64,     DType::u8,    DType::u16,
                            DType::u32, DType::u64, DType::boolean, DType::string};

/// Whether a kernel takes the sample with `type` for its elements.
bool is_taken(const OpDef& def, const Sample& sample, DType type, Device& device) {
  try {
    const SampleGraph built = make_sample_graph(def, sample, type);
    return !prepare_all_kernels(*built.node, device).empty();
  } catch (const Error&) {
    return false;  // inference refuses the type
  }
}

/// Of the elements that the op computes on: the first input's, or the first output's without one.
std::set<DType> types_on(Device& device, const OpDef& def) {
  constexpr int kFloatSamples = 3;  // enough to meet a plain case
  std::set<DType> types;
  int tried = 0;
  for (const Sample& sample : def.samples()) {
    const bool has_input = !sample.inputs.empty() && !sample.inputs.front().is_absent;
    const DType own = has_input ? sample.inputs.front().dtype : DType::f32;
    if (own != DType::f32) {
      if (!types.contains(own) && is_taken(def, sample, DType::f32, device)) types.insert(own);
    } else if (tried++ < kFloatSamples) {
      for (const DType type : kTypes) {
        if (!types.contains(type) && is_taken(def, sample, type, device)) types.insert(type);
      }
    }
  }
  return types;
}

bool is_view(const OpDef& def) {
  return std::ranges::any_of(def.aliases,
                             [](const Alias& alias) { return alias.kind == AliasKind::view; });
}

/// A card's kernels may take types that ONNX does not give the op: those that the CPU takes count.
std::string types_text(Device& device, const OpDef& def) {
  if (is_view(def)) return "any (a view)";
  if (def.is_dynamic) return "between plans";
  const std::set<DType> known = types_on(cpu(), def);
  const std::set<DType> types = types_on(device, def);
  std::string result;
  for (const DType type : kTypes) {
    if (known.contains(type) && types.contains(type))
      result += text(result.empty() ? "" : " ", type);
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

std::string section_of(std::string_view domain) {
  return domain.empty() ? "ai.onnx" : std::string(domain);
}

/// The column of CUDA, by section and op.
using CardTypes = std::map<std::pair<std::string, std::string>, std::string>;

/// What a page says of it: in the fourth column of each row.
CardTypes card_types_of(const std::string& page) {
  constexpr std::size_t kColumn = 3;
  CardTypes found;
  std::istringstream in(page);
  std::string section;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("## ")) section = line.substr(3, line.rfind(' ') - 3);
    if (!line.starts_with("| ")) continue;
    std::vector<std::string> cells;
    for (std::size_t at = 2; at < line.size();) {
      const std::size_t end = std::min(line.find(" | ", at), line.size());
      cells.push_back(line.substr(at, end - at));
      at = end + 3;
    }
    if (cells.size() > kColumn) found[{section, cells[0]}] = cells[kColumn];
  }
  return found;
}

/// What kernels of the card take; null: what the old page says.
std::string card_text(Device* card, const CardTypes& old, const OpDef& def) {
  if (card == nullptr) {
    const auto at = old.find({section_of(def.domain), std::string(def.name)});
    return at == old.end() ? "?" : at->second;
  }
  const bool has_kernel =
      !KernelRegistry::instance().find(DeviceKind::cuda, def.name, def.domain).empty();
  if (!has_kernel && !is_view(def) && !def.is_dynamic) {
    return types_text(cpu(), def) == "as its parts" ? "as its parts" : "-";
  }
  return types_text(*card, def);
}

void print_domain(std::ostream& out, std::string_view domain, Device* card, const CardTypes& old) {
  std::vector<const OpDef*> rows;
  for (const OpDef& def : OpRegistry::instance().all()) {
    if (def.domain == domain) rows.push_back(&def);
  }
  std::ranges::sort(rows, {}, [](const OpDef* def) { return def->name; });
  out << "\n## " << section_of(domain) << " (" << rows.size() << ")\n\n"
      << "| op | versions | CPU types | CUDA types | gradient | samples |\n"
      << "|---|---|---|---|---|---|\n";
  for (const OpDef* def : rows) {
    out << "| " << def->name << " | " << versions_text(*def) << " | " << types_text(cpu(), *def)
        << " | " << card_text(card, old, *def) << " | " << gradient_text(*def) << " | "
        << def->samples().size() << " |\n";
  }
}

std::string page(const std::string& old) {
  std::set<std::string_view> domains;
  for (const OpDef& def : OpRegistry::instance().all()) domains.insert(def.domain);
  Device* const card = devices().size() > 1 ? devices()[1] : nullptr;
  const CardTypes known = card_types_of(old);
  std::ostringstream out;
  out << "# Ops\n\n"
         "Made from the registry by `build/tests/ops_page docs/ops.md`; a test fails when it is\n"
         "stale. Versions: the opsets that changed the op; models from opset 1 to "
      << kNewestOpset
      << "\nare brought to the newest form. CPU types, CUDA types (gpu.md): element types\n"
         "of the first input for which a sample finds a kernel there; others may run too.\n"
         "`as its parts`: it is written as other ops; `between plans`: it runs on the CPU\n"
         "between plans; `any (a view)`: no kernel runs; `-`: there is none; `?` is for a\n"
         "build with GRAFT_CUDA to answer. Gradient: a rule, a decomposition into other\n"
         "ops, or why there is none. Samples: cases on which the sweep tests values,\n"
         "gradients and aliasing.\n"
         "The ops of ai.graft are internal: they never reach a file.\n";
  for (const std::string_view domain : domains) print_domain(out, domain, card, known);
  return out.str();
}

std::string text_of(const char* file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

int check(const char* file) {
  const std::string found = text_of(file);
  if (found == page(found)) return 0;
  std::cerr << file << " is stale: build/tests/ops_page docs/ops.md\n";
  return 1;
}

int write(const char* file) {
  const std::string made = page(text_of(file));
  return std::ofstream(file) << made ? 0 : 1;
}

}  // namespace
}  // namespace graft::test

int main(int count, char** arguments) {
  if (count == 3 && std::string_view(arguments[1]) == "--check") {
    return graft::test::check(arguments[2]);
  }
  if (count == 2) return graft::test::write(arguments[1]);
  std::cerr << "usage: ops_page [--check] FILE\n";
  return 2;
}
