// Exporters that know padding by "same" or by four sizes write a Pad before the convolution, which
// copies the whole image.
#include <algorithm>
#include <functional>
#include <limits>

#include "core/ops/infer.h"
#include "core/passes/pass.h"
#include "core/passes/rewrite_passes.h"

namespace graft::passes {
namespace {
namespace padding_folding {

/// Of one side of an axis: as much as convolutions take.
constexpr std::int64_t kMostPadding = std::numeric_limits<std::int32_t>::max();

const Pattern x = any();

/// The elements of a constant; empty where they are not known.
std::vector<std::int64_t> known_ints(const Value* value) {
  const Tensor elements = constant_of(value);
  return elements.defined() ? to_int64(elements) : std::vector<std::int64_t>();
}

/// What a Pad puts before and behind the spatial axes, as Conv's attribute has it; empty where it
/// does anything else.
std::vector<std::int64_t> spatial_zeros(const Node& pad) {
  if (pad.attributes.get_string("mode", "constant") != "constant" || pad.input(3) != nullptr) {
    return {};
  }
  const Value* const value = pad.input(2);
  if (value != nullptr && scalar_of(value).value_or(1.0) != 0.0) return {};
  const std::vector<std::int64_t> all = known_ints(pad.input(1));
  constexpr std::size_t kFewest = 6;  // of three axes
  if (all.size() < kFewest || all.size() % 2 != 0) return {};
  const std::size_t rank = all.size() / 2;
  std::vector<std::int64_t> spatial;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool is_spatial = i % rank >= 2;
    if (is_spatial ? all[i] < 0 || all[i] > kMostPadding : all[i] != 0) return {};
    if (is_spatial) spatial.push_back(all[i]);
  }
  return spatial;
}

bool adds_zeros(const Node& pad) {
  return !spatial_zeros(pad).empty();
}

bool says_its_padding(const Node& conv) {
  const std::string mode = conv.attributes.get_string("auto_pad", "NOTSET");
  return mode == "NOTSET" || mode == "VALID";
}

const Pattern padded = op("Pad", {x}, adds_zeros);

/// Of both together; those of a convolution that says VALID do not count.
std::vector<std::int64_t> pads_of(const Match& m) {
  std::vector<std::int64_t> pads = spatial_zeros(m.node(padded));
  const Attributes& conv = m.root().attributes;
  const std::vector<std::int64_t> own = conv.get_ints("pads");
  if (conv.get_string("auto_pad", "NOTSET") == "VALID" || own.size() != pads.size()) return pads;
  std::ranges::transform(pads, own, pads.begin(), std::plus<>());
  return pads;
}

bool have_room(const Match& m) {
  return std::ranges::all_of(pads_of(m), [](std::int64_t pad) { return pad <= kMostPadding; });
}

Expr padded_convolution(const Match& m) {
  const Node& conv = m.root();
  Attributes attributes = conv.attributes;
  attributes.erase("auto_pad");
  attributes.set({"pads", pads_of(m)});
  std::vector<Expr> inputs{m[x]};
  for (int i = 1; i < conv.input_count(); ++i) inputs.push_back(m.builder().expr(conv.input(i)));
  return call("Conv", inputs, std::move(attributes));
}

using Ints = std::vector<std::int64_t>;

Expr sample_pad(SampleNet& net, const Expr& of, const std::vector<std::int64_t>& pads) {
  std::vector<Expr> inputs{of, constant_ints(of.builder(), pads), net.number(0.0)};
  return call("Pad", inputs);
}

const std::vector<Rewrite> kRewrites{
    {.name = "pad_of_convolution",
     .match = op("Conv", {once(padded)}, says_its_padding),
     .where = have_room,
     .to = padded_convolution,
     .samples =
         {{"asymmetric",
           [](SampleNet& net) {
             const Expr image = sample_pad(net, net.input({2, 3, 5, 4}), {0, 0, 0, 1, 0, 0, 2, 1});
             return call("Conv", {image, net.input({4, 3, 2, 3}), net.input({4})},
                         {{"strides", Ints{2, 1}}});
           }},
          {"beside_padding_of_its_own",
           [](SampleNet& net) {
             const Expr line = sample_pad(net, net.input({2, 4, 6}), {0, 0, 1, 0, 0, 2});
             return call("Conv", {line, net.input({6, 2, 3})},
                         {{"group", 2}, {"pads", Ints{1, 0}}});
           }},
          {"valid",
           [](SampleNet& net) {
             const Expr line = sample_pad(net, net.input({1, 2, 6}), {0, 0, 2, 0, 0, 0});
             return call("Conv", {line, net.input({3, 2, 3})}, {{"auto_pad", "VALID"}});
           }}}},
};

}  // namespace padding_folding
}  // namespace

std::span<const Rewrite> fold_padding_rewrites() {
  return padding_folding::kRewrites;
}

bool fold_padding(Graph& graph) {
  return rewrite(graph, padding_folding::kRewrites);
}

}  // namespace graft::passes
