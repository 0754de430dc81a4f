#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace graft {

/// What a file may ask for beyond its own size. Whoever sends a file of a few bytes must not fill
/// the memory of its reader, nor keep it busy: a number in a file costs nothing there.
struct Limits {
  /// The largest tensor that constant folding makes, in bytes; what is larger is left to the run.
  std::int64_t folded_tensor_bytes = std::int64_t{1} << 26;
  /// What constant folding may cost one graph, in bytes read and written: this much for any graph,
  /// and `folded_share` for each byte of constants that it came with. What costs more is left to
  /// the run.
  std::int64_t folded_bytes = std::int64_t{1} << 27;
  std::int64_t folded_share = 32;
  /// How many nodes are gone over while conditions become known that depend on each other, one
  /// after the other: this many, and `settled_share` times those of the graph. What has not been
  /// chosen by then is chosen by the run.
  std::int64_t settled_nodes = 200'000;
  std::int64_t settled_share = 16;
  /// Entries of all tables that the kernels of one plan are made with.
  std::int64_t table_entries = std::int64_t{1} << 25;
  /// Axes of a tensor that a graph computes: its shape may be computed too.
  std::int64_t rank = 1024;
  /// Nodes of a model with its functions inlined: this many, and `inlined_share` for each node that
  /// the file has.
  std::int64_t inlined_nodes = 200'000;
  std::int64_t inlined_share = 16;
  /// Functions that call functions.
  std::int64_t call_depth = 64;
  /// Bodies within bodies in a file.
  std::int64_t graph_depth = 64;
  /// Nodes of a graph with its loops unrolled; longer loops are run.
  std::int64_t unrolled_nodes = 20'000;
  /// Bytes that a compressed file unpacks to: this many, and `inflated_share` for each of its own.
  std::int64_t inflated_bytes = std::int64_t{1} << 28;
  std::int64_t inflated_share = 32;
  /// Seconds of processor time in which a file must be read, and each list of passes be run over
  /// its graph (TimeLimit). It decides only whether a model is taken, never what becomes of it.
  std::int64_t import_seconds = 60;
};

/// A limit by the name that the command line has for it.
struct NamedLimit {
  std::string_view name;
  std::int64_t Limits::*value;
};
std::span<const NamedLimit> named_limits();

/// base + share * own, where a limit grows with the file's own size; the largest number if that
/// overflows.
std::int64_t grown(std::int64_t base, std::int64_t share, std::uint64_t own);

/// "the limit is 1024; --allow rank=NUMBER raises it": how an error ends. `most` is what came out,
/// where a limit grows with the file.
std::string limit_text(std::string_view name, std::int64_t most);

/// The limits that hold for this program.
const Limits& limits();

/// Replaces them. To call before models are read: whoever reads one meanwhile may meet either.
void set_limits(const Limits& limits);

}  // namespace graft
