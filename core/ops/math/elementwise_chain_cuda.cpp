// The programs that the interpreter kernel runs (elementwise_chain_cuda.cu): one link for an
// element-wise op of its own, all links of an ElementwiseChain.
#include "core/ops/math/elementwise_chain_cuda.h"

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <optional>
#include <unordered_map>

#include "core/base/at.h"
#include "core/ops/kernels/broadcast.h"
#include "core/ops/kernels/factory_cuda.h"
#include "core/ops/math/elementwise_chain.h"
#include "core/ops/math/link_rows_cuda.h"

namespace graft {
namespace {

std::optional<ChainType> chain_type(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return ChainType::f32;
    case DType::bf16:
      return ChainType::bf16;
    case DType::boolean:
      return ChainType::boolean;
    default:
      return std::nullopt;
  }
}

// Clip may need two more operands.
static_assert(kMostDeviceChainOperands + 2 <= ChainProgram::kMostOperands);
static_assert(kMostDeviceChainValues <= ChainProgram::kMostSlots);
static_assert(kMostDeviceChainAxes == ChainProgram::kMostAxes);
static_assert(kMostChainInputs <= ChainProgram::kMostResults);

/// What does not fit: too many values, axes, or another element type.
struct DoesNotFit {};

/// A program and which operands of the node it reads.
struct PreparedChain {
  ChainProgram program;
  std::vector<int> inputs;  ///< one an operand; -1 for a literal
};

class ChainBuilder {
 public:
  using Program = ChainProgram;

  explicit ChainBuilder(const Shape& shape) : shape_(shape) { chain_.program.size = shape.size(); }

  void add_input(const Value* value, const TensorSpec& spec, int index) {
    Program::Operand& operand = add_operand(value, index);
    operand.type = type_of(spec.dtype);
    steps_.push_back(broadcast_strides(spec.shape, shape_));
  }
  void add_literal(const Value* value, float number) {
    Program::Operand& operand = add_operand(value, -1);
    operand.walk = Program::Walk::literal;
    operand.literal = number;
    steps_.emplace_back(static_cast<std::size_t>(shape_.rank()), 0);
  }

  /// Before the links, if one of them may need them.
  void add_infinities() {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    lowest_ = static_cast<std::int16_t>(chain_.program.slot_count);
    add_literal(nullptr, -kInfinity);
    highest_ = static_cast<std::int16_t>(chain_.program.slot_count);
    add_literal(nullptr, kInfinity);
  }

  /// Before the links as well: by what a Mean divides its sum.
  void add_divisor(int count) {
    divisor_ = static_cast<std::int16_t>(chain_.program.slot_count);
    add_literal(nullptr, static_cast<float>(count));
  }

  /// To be called for every node, in order, before the first `add_link`.
  void count_reads(const Node& node) {
    for (const Value* input : node.inputs()) ++reads_[input];
  }
  void keep(const Value* result) { ++reads_[result]; }

  void add_link(const Node& node) {
    auto link = link_of(node);
    Program& program = chain_.program;
    if (!link || program.link_count == Program::kMostLinks) throw DoesNotFit{};
    std::array<std::int16_t, 3> from{};
    for (int i = 0; i < node.input_count(); ++i) {
      if (i == 3) throw DoesNotFit{};
      if (node.input(i) != nullptr) from[at(i)] = slots_.at(node.input(i));
    }
    if (link->op == LinkOp::clip) add_bounds(node, from);
    link->x = from[0];
    link->y = from[1];
    link->z = from[2];
    for (const Value* input : node.inputs()) {
      if (input != nullptr && --reads_[input] == 0) free_.push_back(slots_.at(input));
    }
    link->to = take_slot();
    link->rounds_to_bf16 = type_of(node.output(0)->dtype()) == ChainType::bf16;
    slots_[node.output(0)] = link->to;
    program.links[program.link_count++] = *link;
  }

  /// Of a node that stands alone: Max, Min, Sum or Mean, one operand after the other.
  void add_fold(const Node& node) {
    ChainLink link = *link_of(node);
    link.to = take_slot();
    link.x = slots_.at(node.input(0));
    for (int i = 1; i < node.input_count(); ++i) {
      if (chain_.program.link_count == Program::kMostLinks) throw DoesNotFit{};
      link.y = slots_.at(node.input(i));
      link.rounds_to_bf16 = false;  // the result is, where it is stored
      chain_.program.links[chain_.program.link_count++] = link;
      link.x = link.to;
    }
    if (divisor_ >= 0) {
      chain_.program.links[chain_.program.link_count++] = {
          .op = LinkOp::divide, .x = link.x, .y = divisor_, .to = link.to};
    }
    slots_[node.output(0)] = link.to;
  }
  /// Of one that stands alone: ClipGrad, dy where x is within the bounds.
  void add_clip_gradient(const Node& node) {
    Program& program = chain_.program;
    const auto bound = [&](int i, std::int16_t otherwise) {
      return node.input(i) == nullptr ? otherwise : slots_.at(node.input(i));
    };
    const std::int16_t to = take_slot();
    program.links[program.link_count++] = {.op = LinkOp::within,
                                           .x = slots_.at(node.input(0)),
                                           .y = bound(2, lowest_),
                                           .z = bound(3, highest_),
                                           .to = to};
    program.links[program.link_count++] = {
        .op = LinkOp::relu_gradient, .x = to, .y = slots_.at(node.input(1)), .to = to};
    slots_[node.output(0)] = to;
  }

  void add_result(const Value* value, DType dtype) {
    Program& program = chain_.program;
    if (program.result_count == Program::kMostResults) throw DoesNotFit{};
    program.results[program.result_count++] = {nullptr, type_of(dtype), slots_.at(value)};
  }

  PreparedChain finish() {
    merge_axes();
    return std::move(chain_);
  }

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  static ChainType type_of(DType dtype) {
    const auto type = chain_type(dtype);
    if (!type) throw DoesNotFit{};
    return *type;
  }

  Program::Operand& add_operand(const Value* value, int index) {
    Program& program = chain_.program;
    if (program.operand_count == Program::kMostOperands) throw DoesNotFit{};
    chain_.inputs.push_back(index);
    // Operands have the first slots, in their order; those that stand nowhere are never freed.
    const std::int16_t slot = take_slot();
    if (value != nullptr) slots_[value] = slot;
    return program.operands[program.operand_count++];
  }

  /// A new one while operands are added, since none is free then.
  std::int16_t take_slot() {
    if (!free_.empty()) {
      const std::int16_t slot = free_.back();
      free_.pop_back();
      return slot;
    }
    if (chain_.program.slot_count == Program::kMostSlots) throw DoesNotFit{};
    return static_cast<std::int16_t>(chain_.program.slot_count++);
  }

  /// Bounds that are left out are infinite.
  void add_bounds(const Node& node, std::array<std::int16_t, 3>& from) {
    if (node.input(1) == nullptr) from[1] = lowest_;
    if (node.input(2) == nullptr) from[2] = highest_;
  }

  /// Neighbouring axes along which every operand moves alike are one axis.
  void merge_axes() {
    Program& program = chain_.program;
    const std::vector<std::int64_t> along = shape_.strides();
    for (int axis = 0; axis < shape_.rank(); ++axis) {
      if (shape_[axis] == 1) continue;
      bool merges = program.axes > 0;
      for (std::size_t k = 0; k < steps_.size() && merges; ++k) {
        merges = program.operands[k].steps[program.axes - 1] == steps_[k][at(axis)] * shape_[axis];
      }
      if (!merges && program.axes == Program::kMostAxes) throw DoesNotFit{};
      const int to = merges ? program.axes - 1 : program.axes++;
      program.dims[to] = merges ? program.dims[to] * shape_[axis] : shape_[axis];
      for (std::size_t k = 0; k < steps_.size(); ++k) {
        program.operands[k].steps[to] = steps_[k][at(axis)];
      }
    }
    for (std::size_t k = 0; k < steps_.size(); ++k)
      choose_walk(program.operands[k], steps_[k], along);
  }

  void choose_walk(Program::Operand& operand, const std::vector<std::int64_t>& steps,
                   const std::vector<std::int64_t>& along) const {
    if (operand.walk == Program::Walk::literal) return;
    bool moves = false;
    bool moves_along = true;
    for (int axis = 0; axis < shape_.rank(); ++axis) {
      if (shape_[axis] == 1) continue;
      moves |= steps[at(axis)] != 0;
      moves_along &= steps[at(axis)] == along[at(axis)];
    }
    operand.walk = moves_along ? Program::Walk::along
                   : moves     ? Program::Walk::by_steps
                               : Program::Walk::still;
  }

  const Shape& shape_;
  PreparedChain chain_;
  std::vector<std::vector<std::int64_t>> steps_;  // of each operand, by axes of the shape
  std::unordered_map<const Value*, std::int16_t> slots_;
  std::unordered_map<const Value*, int> reads_;  // that are to come
  std::vector<std::int16_t> free_;
  std::int16_t lowest_ = -1;
  std::int16_t highest_ = -1;
  std::int16_t divisor_ = -1;
};

bool is_clip_gradient(const Node& node) {
  return node.is("ClipGrad", kInternalDomain);
}

bool lacks_bound(const Node& node) {
  const int first = is_clip_gradient(node) ? 2 : 1;
  return (node.is("Clip") || is_clip_gradient(node)) &&
         (node.input(first) == nullptr || node.input(first + 1) == nullptr);
}

/// The op itself, in as many links as it takes.
PreparedChain single_link(const KernelRequest& request) {
  const Node& node = request.node();
  ChainBuilder builder(request.output().shape);
  for (int i = 0; i < request.input_count(); ++i) {
    if (request.has_input(i)) builder.add_input(node.input(i), request.input(i), i);
  }
  if (lacks_bound(node)) builder.add_infinities();
  if (node.is("Mean")) builder.add_divisor(request.input_count());
  if (is_clip_gradient(node)) {
    builder.add_clip_gradient(node);
  } else if (is_fold(node)) {
    builder.add_fold(node);
  } else {
    builder.count_reads(node);
    builder.keep(node.output(0));
    builder.add_link(node);
  }
  builder.add_result(node.output(0), request.output().dtype);
  return builder.finish();
}

/// The links of a chain's body.
PreparedChain all_links(const KernelRequest& request, const Graph& body) {
  ChainBuilder builder(request.output().shape);
  for (int i = 0; i < request.input_count(); ++i) {
    builder.add_input(at(body.inputs(), i), request.input(i), i);
  }
  for (const Value* constant : body.initializers()) {
    if (constant->initializer().size() != 1) throw DoesNotFit{};
    builder.add_literal(constant, constant->initializer().cast(DType::f32).values<float>()[0]);
  }
  const auto& nodes = body.nodes();
  if (std::ranges::any_of(nodes, [](const auto& node) { return lacks_bound(*node); })) {
    builder.add_infinities();
  }
  for (const auto& node : nodes) builder.count_reads(*node);
  for (const Value* output : body.outputs()) builder.keep(output);
  for (const auto& node : nodes) builder.add_link(*node);
  for (const Value* output : body.outputs()) builder.add_result(output, output->dtype());
  return builder.finish();
}

Kernel kernel_of(PreparedChain chain, cudaStream_t stream) {
  const auto shared = std::make_shared<const PreparedChain>(std::move(chain));
  return [shared, stream](const KernelArgs& args) {
    ChainProgram program = shared->program;
    for (std::size_t k = 0; k < shared->inputs.size(); ++k) {
      const int input = shared->inputs[k];
      if (input >= 0) program.operands[k].data = at(args.inputs, input);
    }
    for (int k = 0; k < program.result_count; ++k) {
      program.results[k].data = at(args.outputs, k);
    }
    run_chain(program, stream);
  };
}

Kernel make_single(KernelRequest& request) {
  try {
    return kernel_of(single_link(request), as_cuda(request.device()).stream());
  } catch (const DoesNotFit&) {
    return {};
  }
}

/// An op that may be a part of a chain.
Kernel make_link(KernelRequest& request) {
  return is_fold(request.node()) ? Kernel() : make_single(request);
}

Kernel make_fold(KernelRequest& request) {
  return is_fold(request.node()) ? make_single(request) : Kernel();
}

Kernel make_chain(KernelRequest& request) {
  try {
    const std::unique_ptr<Graph> body = typed_body(request.node());
    return kernel_of(all_links(request, *body), as_cuda(request.device()).stream());
  } catch (const DoesNotFit&) {
    return {};
  }
}

}  // namespace

void register_elementwise_chain_cuda(KernelRegistry& registry) {
  for (const LinkRow& row : link_rows()) {
    add_cuda_kernels(registry, kDeviceChainKernel, {{row.op, make_link, row.domain}});
  }
  add_cuda_kernels(registry, kDeviceChainKernel,
                   {{"ElementwiseChain", make_chain, kInternalDomain},
                    {"UpdateChain", make_chain, kInternalDomain}});
  add_cuda_kernels(registry, "links",
                   {{"Max", make_fold},
                    {"Min", make_fold},
                    {"Sum", make_fold},
                    {"Mean", make_fold},
                    {"ClipGrad", make_single, kInternalDomain}});
}

}  // namespace graft
