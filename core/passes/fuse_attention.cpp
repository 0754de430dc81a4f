// softmax(scale q k^T + bias) v, as exporters write it: masks are sums, or choices of minus
// infinity. Around it, the rewrite looks for transposes and a Split that the kernel can do without,
// which is walked by hand: those may be there for some operands, and must be for all. Start at
// `kRewrites`.
#include <algorithm>
#include <array>
#include <limits>
#include <ranges>
#include <unordered_set>

#include "core/base/at.h"
#include "core/ops/alias.h"
#include "core/passes/pass.h"
#include "core/passes/rewrite_passes.h"

namespace graft::passes {
namespace {
namespace attention_fusion {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// A choice between scores and minus infinity: the input that holds the scores; -1 for another.
int input_of_scores(const Node& where) {
  if (scalar_of(where.input(1)) == -kInfinity) return 2;
  return scalar_of(where.input(2)) == -kInfinity ? 1 : -1;
}

/// Whether the node masks scores, its input `index`.
bool is_mask(const Node& node, int index) {
  const bool masks = node.is("Add") || (node.is("Where") && index == input_of_scores(node));
  return masks && have_one_shape(node.input(index), node.output());
}

bool is_over_last_axis(const Node& softmax) {
  const std::optional<Shape> shape = shape_of(softmax.input(0));
  const std::int64_t axis = softmax.attributes.get_int("axis", -1);
  return shape && (axis == -1 || axis == shape->rank() - 1);
}

const Pattern q = any();
const Pattern k_columns = any();  // [..., depth, key]
const Pattern v = any();
const std::array kFactors{any_number(), any_number(), any_number()};
const Pattern products = op("MatMul", {scaled(q, kFactors[1]), scaled(k_columns, kFactors[2])});
const Pattern scores = through(is_mask, once(scaled(once(products), kFactors[0])));
const Pattern shares = op("Softmax", {scores}, is_over_last_axis);

/// Whether what trains, or changes between runs, enters the value.
bool depends_on_variable(const Value* start) {
  std::unordered_set<const Value*> seen;
  std::vector<const Value*> open{start};
  while (!open.empty()) {
    const Value* const value = open.back();
    open.pop_back();
    if (value == nullptr || !seen.insert(value).second) continue;
    if (value->is_variable) return true;
    const Node* const node = value->producer();
    if (node != nullptr) open.insert(open.end(), node->inputs().begin(), node->inputs().end());
  }
  return false;
}

/// What a mask adds, or by what it chooses.
Value* operand_of(const Step& mask) {
  return mask.node->input(mask.node->is("Where") ? 0 : 1 - mask.index);
}

/// Shapes as TiledAttention wants them: of one rank, batch dims alike.
bool is_attention(const Match& m) {
  const DType dtype = m[shares].dtype();
  if (dtype != DType::f32 && dtype != DType::f64) return false;
  const Shape s = m[shares].shape();
  const int batch = s.rank() - 2;
  const auto fits = [&](const Pattern& operand) {
    const Shape shape = m[operand].shape();
    return shape.rank() == s.rank() && std::equal(s.begin(), s.begin() + batch, shape.begin());
  };
  return batch >= 0 && fits(q) && fits(k_columns) && fits(v) &&
         std::ranges::none_of(m.steps(scores), [](const Step& mask) {
           return depends_on_variable(operand_of(mask));
         });
}

std::vector<std::int64_t> permutation_of(const Node& transpose) {
  const int rank = transpose.input(0)->known_shape().rank();
  std::vector<std::int64_t> reversed;
  for (int i = rank; i-- > 0;) reversed.push_back(i);
  return transpose.attributes.get_ints("perm", reversed);
}

/// Goes on to x where the value is x times or by constants, which `scale` takes in.
Expr without_factors(const Match& m, Value* value, double& scale) {
  static const Pattern x = any();
  static const Pattern factor = any_number();
  static const Pattern form = scaled(x, factor);
  Match inner(m.graph());
  if (!find_match(form, *value, nullptr, inner)) return m.builder().expr(value);
  scale *= inner.number(factor);
  return m.builder().expr(inner[x].value());
}

/// k as rows [..., key, depth]. A Transpose that made columns of them is undone.
Expr rows_of(const Match& m, double& scale) {
  const Expr columns = m[k_columns];
  const Node* const node = columns.value()->producer();
  if (node == nullptr || !node->is("Transpose")) return transpose_last(columns);
  std::vector<std::int64_t> order = permutation_of(*node);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  if (std::ranges::is_sorted(order)) return without_factors(m, node->input(0), scale);
  return transpose(m.builder().expr(node->input(0)), order);
}

/// The sum of all masks as addends, the last one first; empty without any.
Expr bias_of(const Match& m) {
  Expr bias;
  for (const Step& mask : std::views::reverse(m.steps(scores))) {
    Expr addend = m.builder().expr(operand_of(mask));
    if (mask.node->is("Where")) {
      const auto constant = [&](double number) {
        return m.builder().expr(m.builder().constant(Tensor::full(m[q].dtype(), Shape{}, number)));
      };
      const Expr shown = constant(0.0);
      const Expr hidden = constant(-kInfinity);
      addend = mask.index == 2 ? where(addend, hidden, shown) : where(addend, shown, hidden);
    }
    bias = bias ? bias + addend : addend;
  }
  return bias;
}

/// Takes axis `from` out and puts it back before what then is axis `to`.
template <class T>
std::vector<T> with_moved(std::vector<T> list, int from, int to) {
  const T moved = at(list, from);
  list.erase(list.begin() + from);
  list.insert(list.begin() + to, moved);
  return list;
}

/// The axis that a transpose makes the last but one, if that is all it does.
std::optional<int> sequence_axis_of(const Node* node) {
  if (node == nullptr || !node->is("Transpose")) return std::nullopt;
  const std::vector<std::int64_t> order = permutation_of(*node);
  const int rank = static_cast<int>(order.size());
  std::vector<std::int64_t> same;
  for (int i = 0; i < rank; ++i) same.push_back(i);
  if (rank < 3) return std::nullopt;
  const int axis = static_cast<int>(order[order.size() - 2]);
  if (axis >= rank - 2 || order != with_moved(same, axis, rank - 2)) return std::nullopt;
  return axis;
}

/// An operand as it lay before a transpose brought it into the form [..., sequence, depth].
struct Origin {
  Expr value;
  int sequence_axis;
};

/// Also through a Reshape that divides or joins the other axes.
std::optional<Origin> origin_of(Builder& builder, const Expr& rows) {
  const Node* node = rows.value()->producer();
  if (node != nullptr && node->is("Reshape")) node = node->input(0)->producer();
  const std::optional<int> axis = sequence_axis_of(node);
  if (!axis) return std::nullopt;
  const Shape wanted = rows.shape();
  const Shape found = node->output()->known_shape();
  const int rank = wanted.rank();
  if (wanted[rank - 2] != found[found.rank() - 2] || wanted[rank - 1] != found[found.rank() - 1]) {
    return std::nullopt;
  }
  for (int split = 0; split < rank - 2; ++split) {
    if (wanted.size(0, split) != found.size(0, *axis)) continue;
    const Shape dims(with_moved(wanted.dims(), rank - 2, split));
    return Origin{reshape(builder.expr(node->input(0)), dims), split};
  }
  return std::nullopt;
}

/// q, k, v of one attention, its other inputs, and where its result goes.
struct Call {
  std::vector<Expr> operands;
  Attributes attributes;
  Value* result;
};

/// Where q, k and v were all transposed from one layout, and the result is transposed back to it,
/// the kernel reads and writes that layout itself.
void skip_transposes(Builder& builder, Call& call) {
  const Node* const reader = only_reader(call.result);
  if (reader == nullptr || !reader->is("Transpose") || call.result->known_shape().size() == 0) {
    return;
  }
  std::vector<Origin> origins;
  for (const Expr& operand : call.operands) {
    std::optional<Origin> origin = origin_of(builder, operand);
    if (!origin) return;
    origins.push_back(*std::move(origin));
  }
  const int axis = origins.front().sequence_axis;
  const auto is_same = [&](const Origin& o) { return o.sequence_axis == axis; };
  const std::vector<std::int64_t> back = permutation_of(*reader);
  std::vector<std::int64_t> same;
  for (std::int64_t i = 0; i < std::ssize(back); ++i) same.push_back(i);
  if (!std::ranges::all_of(origins, is_same) ||
      back != with_moved(same, static_cast<int>(back.size()) - 2, axis)) {
    return;
  }
  for (std::size_t i = 0; i < origins.size(); ++i) call.operands[i] = origins[i].value;
  call.attributes.set({"sequence_axis", axis});
  call.result = reader->output();
}

/// Whether the operands are, in order, all parts of what the node splits evenly.
bool are_parts_of(const Node* split, const std::vector<Expr>& operands) {
  if (split == nullptr || !split->is("Split") || split->output_count() != std::ssize(operands)) {
    return false;
  }
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const bool is_part = origin(operands[i].value()) == split->output(static_cast<int>(i)) &&
                         operands[i].shape() == operands[0].shape();
    if (!is_part) return false;
  }
  return true;
}

/// Where q, k and v were split from one value, the kernel reads that itself, and its gradient is
/// one value, too.
void skip_split(Builder& builder, Call& call) {
  const Node* const split = origin(call.operands.front().value())->producer();
  if (!are_parts_of(split, call.operands)) return;
  const Shape whole = split->input(0)->known_shape();
  const int split_axis =
      normalize_axis(split->attributes.get_int("axis", 0), whole.rank(), split->label());
  const Shape part = call.operands.front().shape();
  const int sequence_axis =
      normalize_axis(call.attributes.get_int("sequence_axis", -2), part.rank(), split->label());
  for (int axis = sequence_axis + 1; axis < part.rank(); ++axis) {
    if (part.size() == 0 || part.size(0, axis) != whole.size(0, split_axis)) continue;
    std::vector<std::int64_t> dims = part.dims();
    dims.insert(dims.begin() + axis, std::ssize(call.operands));
    call.operands = {reshape(builder.expr(split->input(0)), Shape(std::move(dims))), {}, {}};
    call.attributes.set({"sequence_axis", sequence_axis});
    call.attributes.set({"stack_axis", axis});
    return;
  }
}

Results attention(const Match& m) {
  double scale = m.number(kFactors[0]) * m.number(kFactors[1]) * m.number(kFactors[2]);
  const Expr k = rows_of(m, scale);
  Expr queries = m[q];
  if (!fits_attribute(scale, queries.dtype())) {
    queries = queries * constant_like(queries, std::exchange(scale, 1.0));
  }
  Call one{{queries, k, m[v]}, {{"scale", scale}}, m.result()};
  skip_transposes(m.builder(), one);
  skip_split(m.builder(), one);
  if (const Expr bias = bias_of(m)) one.operands.push_back(bias);
  const Expr y =
      call_multi("TiledAttention", kInternalDomain, one.operands, 2, one.attributes).front();
  if (one.result == m.result()) return y;
  m.graph().replace_all_uses(one.result, y.value());
  return {};
}

/// Queries [2,3,4], keys [2,5,4] and values [2,5,6] of a sample.
struct Operands {
  explicit Operands(SampleNet& net)
      : queries(net.input({2, 3, 4})), keys(net.input({2, 5, 4})), values(net.input({2, 5, 6})) {}

  Expr queries;
  Expr keys;
  Expr values;
};

Expr attend(const Expr& before, const Expr& values) {
  return matmul(call("Softmax", {before}, {{"axis", -1}}), values);
}

/// Three heads, as PyTorch writes them for a sequence in front, from parts [5, 2, 8].
Expr attend_to_parts(const std::vector<Expr>& parts) {
  std::vector<Expr> heads;
  for (const Expr& part : parts) {
    heads.push_back(reshape(transpose(reshape(part, {5, 4, 4}), {1, 0, 2}), {2, 2, 5, 4}));
  }
  return transpose(attend(matmul(heads[0], transpose_last(heads[1])), heads[2]), {2, 0, 1, 3});
}

const std::vector<Rewrite> kRewrites{
    {.name = "attention",
     .match = op("MatMul", {once(shares), v}),
     .where = is_attention,
     .to = attention,
     .samples = {{"plain",
                  [](SampleNet& net) {
                    const Operands o(net);
                    return attend(matmul(o.queries, transpose_last(o.keys)), o.values);
                  }},
                 {"factors_everywhere",
                  [](SampleNet& net) {
                    const Operands o(net);
                    const Expr k = transpose_last(o.keys * 3.0) * 0.5;
                    return attend(matmul(o.queries * 0.5, k) / 8.0, o.values);
                  }},
                 {"masks",
                  [](SampleNet& net) {
                    const Operands o(net);
                    const Expr sums = matmul(o.queries, transpose_last(o.keys)) * 2.0;
                    const Expr hidden = net.input({1, 5}, DType::boolean);
                    return attend(where(hidden, net.number(-kInfinity), net.input({3, 5}) + sums),
                                  o.values);
                  }},
                 {"shown_keys",
                  [](SampleNet& net) {
                    const Operands o(net);
                    const Expr sums = matmul(o.queries, transpose_last(o.keys));
                    const Expr seen = net.input({2, 3, 5}, DType::boolean);
                    return attend(where(seen, sums, net.number(-kInfinity)), o.values);
                  }},
                 {"heads_behind_the_sequence",
                  [](SampleNet& net) {
                    const auto heads = [&](std::int64_t length) {
                      return transpose(net.input({2, length, 3, 4}), {0, 2, 1, 3});
                    };
                    const Expr k = transpose(net.input({2, 5, 3, 4}), {0, 2, 3, 1});
                    return transpose(attend(matmul(heads(3), k), heads(5)), {0, 2, 1, 3});
                  }},
                 {"parts_of_one_value",
                  [](SampleNet& net) {
                    return attend_to_parts(
                        call_multi("Split", "", {net.input({5, 2, 24})}, 3, {{"axis", 2}}));
                  }},
                 {"parts_in_another_order",
                  [](SampleNet& net) {
                    std::vector<Expr> parts =
                        call_multi("Split", "", {net.input({5, 2, 24})}, 3, {{"axis", 2}});
                    std::swap(parts[0], parts[1]);
                    return attend_to_parts(parts);
                  }}}},
};

}  // namespace attention_fusion
}  // namespace

std::span<const Rewrite> fuse_attention_rewrites() {
  return attention_fusion::kRewrites;
}

bool fuse_attention(Graph& graph) {
  return rewrite(graph, attention_fusion::kRewrites);
}

}  // namespace graft::passes
