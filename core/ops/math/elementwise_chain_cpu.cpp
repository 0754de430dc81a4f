// A chain runs block by block: all its links on one block of elements, then all on the next. What
// one link hands to another stays in the first-level cache; operands are read and results written
// once. Start at ChainKernel::operator().
#include <cstring>
#include <memory>

#include "core/base/machine.h"
#include "core/base/pointer_map.h"
#include "core/ops/kernels/elementwise.h"
#include "core/ops/math/elementwise_chain.h"
#include "core/ops/registry.h"

namespace graft {
namespace {

/// Blocks of what links hand on, within the first-level cache beside a block of each operand.
constexpr std::int64_t kScratchBytes = kFirstCacheBytes / 4 * 3;
constexpr std::int64_t kMostBlockElements = 1024;
constexpr std::int64_t kBlockMultiple = 16;

/// A value of the body.
struct Slot {
  enum class Kind { input, constant, output, buffer };
  Kind kind;
  int index;          ///< among the inputs, constants, outputs or buffers
  std::size_t width;  ///< bytes an element
};

struct Link {
  RunFunction run;
  std::array<int, kMostLinkInputs> from{};  ///< slots; -1 where left out
  std::size_t from_count = 0;
  int to = -1;
};

/// An output that must not be written before the last link of a block if it has the memory of that
/// input; it waits in a buffer then.
struct Conflict {
  int output_slot;
  int input;
};

struct Program {
  std::vector<Slot> slots;
  std::vector<Link> links;
  std::vector<Conflict> conflicts;
  std::vector<Tensor> constants;
  std::vector<int> waiting_slots;   ///< outputs with conflicts
  std::vector<int> waiting_buffer;  ///< by slot: where such an output waits; else -1
  int buffer_count = 0;
  std::size_t width = 1;   ///< bytes of the widest element
  std::int64_t block = 0;  ///< elements
};

bool may_overwrite(const Node& link, const Value* operand) {
  bool may = true;
  for (int i = 0; i < link.input_count(); ++i) {
    if (link.input(i) != operand) continue;
    const auto& aliases = OpRegistry::instance().get(link).aliases;
    may &= std::ranges::any_of(aliases, [&](const Alias& alias) {
      return alias.input == i && alias.kind == AliasKind::in_place;
    });
  }
  return may;
}

class ProgramBuilder {
 public:
  ProgramBuilder(const Graph& body, Device& device) : body_(body), device_(device) {}

  /// Without links if one of them is not element-wise on this device.
  Program run() {
    number_links();
    for (const Value* input : body_.inputs()) add_slot(*input, Slot::Kind::input, inputs_++);
    for (const Value* constant : body_.initializers()) {
      add_slot(*constant, Slot::Kind::constant, static_cast<int>(program_.constants.size()));
      program_.constants.push_back(constant->initializer());
    }
    for (const auto& node : body_.nodes()) {
      if (!add_link(*node)) return {};
    }
    find_conflicts();
    choose_block();
    return std::move(program_);
  }

 private:
  void number_links() {
    int number = 0;
    for (const auto& node : body_.nodes()) {
      for (const Value* input : node->inputs()) {
        if (input != nullptr) last_read_[input] = number;
      }
      number_[node.get()] = number++;
    }
  }

  int add_slot(const Value& value, Slot::Kind kind, int index) {
    const int slot = static_cast<int>(program_.slots.size());
    program_.slots.push_back({kind, index, bytes_of(value.dtype(), 1)});
    slot_of_[&value] = slot;
    return slot;
  }

  bool add_link(const Node& node) {
    Link link{.run = find_run_function(node, device_)};
    if (!link.run) return false;
    link.from_count = node.inputs().size();
    for (std::size_t i = 0; i < link.from_count; ++i) {
      const Value* const input = node.inputs()[i];
      link.from[i] = input == nullptr ? -1 : slot_of_.at(input);
    }
    const Value& result = *node.output(0);
    const auto& outputs = body_.outputs();
    const auto at = std::ranges::find(outputs, &result);
    link.to = at != outputs.end()
                  ? add_slot(result, Slot::Kind::output, static_cast<int>(at - outputs.begin()))
                  : add_slot(result, Slot::Kind::buffer, take_buffer());
    release_buffers(node);
    program_.links.push_back(std::move(link));
    return true;
  }

  int take_buffer() {
    if (free_.empty()) return program_.buffer_count++;
    const int buffer = free_.back();
    free_.pop_back();
    return buffer;
  }

  /// Only after the link has its result: that lies apart from its operands.
  void release_buffers(const Node& node) {
    std::vector<const Value*> read;
    for (const Value* input : node.inputs()) {
      if (input == nullptr || std::ranges::find(read, input) != read.end()) continue;
      read.push_back(input);
      const Slot& slot = program_.slots[static_cast<std::size_t>(slot_of_.at(input))];
      if (slot.kind == Slot::Kind::buffer && last_read_.at(input) == number_.at(&node)) {
        free_.push_back(slot.index);
      }
    }
  }

  void find_conflicts() {
    program_.waiting_buffer.assign(program_.slots.size(), -1);
    for (const Value* output : body_.outputs()) {
      const Node& link = *output->producer();
      const int slot = slot_of_.at(output);
      for (int i = 0; i < inputs_; ++i) {
        const Value* const input = body_.inputs()[static_cast<std::size_t>(i)];
        const int* const read = last_read_.find(input);
        const int last = read == nullptr ? -1 : *read;
        const int written = number_.at(&link);
        if (last < written || (last == written && may_overwrite(link, input))) continue;
        program_.conflicts.push_back({slot, i});
        int& buffer = program_.waiting_buffer[static_cast<std::size_t>(slot)];
        if (buffer >= 0) continue;
        buffer = program_.buffer_count++;
        program_.waiting_slots.push_back(slot);
      }
    }
  }

  void choose_block() {
    std::size_t width = 1;
    for (const Slot& slot : program_.slots) width = std::max(width, slot.width);
    const std::int64_t buffers = std::max(program_.buffer_count, 1);
    const std::int64_t room = kScratchBytes / (buffers * static_cast<std::int64_t>(width));
    program_.block = std::min(kMostBlockElements, room / kBlockMultiple * kBlockMultiple);
    program_.width = width;
  }

  const Graph& body_;
  Device& device_;
  Program program_;
  PointerMap<Value, int> slot_of_;
  PointerMap<Node, int> number_;
  PointerMap<Value, int> last_read_;  // number of a link
  std::vector<int> free_;             // buffers
  int inputs_ = 0;
};

/// Where the elements of a slot lie during one run of elements.
struct Cursor {
  std::byte* start;
  std::size_t advance;  ///< bytes from one element to the next; 0: the same place for each block
  std::int64_t step;    ///< as in RunOperand

  std::byte* at(std::int64_t done) const {
    return start + static_cast<std::size_t>(done) * advance;
  }
};

using Loop = BroadcastLoop<kMostChainInputs>;

class ChainKernel {
 public:
  ChainKernel(Program program, const Loop& loop) : program_(std::move(program)), loop_(loop) {}

  void operator()(const KernelArgs& args) const {
    std::array<bool, kMostChainValues> waits{};
    for (const Conflict& conflict : program_.conflicts) {
      const int output = program_.slots[at(conflict.output_slot)].index;
      const bool shares = args.outputs[at(output)] == args.inputs[at(conflict.input)];
      waits[at(conflict.output_slot)] |= shares;
    }
    loop_.for_each_run([&](std::int64_t offset, const auto& from, std::int64_t count) {
      alignas(64) std::array<std::byte, kScratchBytes> scratch;
      std::array<Cursor, kMostChainValues> cursors;
      for (std::size_t slot = 0; slot < program_.slots.size(); ++slot) {
        cursors[slot] = cursor(slot, waits[slot], args, offset, from, scratch.data());
      }
      for (std::int64_t done = 0; done < count; done += program_.block) {
        const std::int64_t size = std::min(program_.block, count - done);
        run_links(cursors, done, size);
        for (const int slot : program_.waiting_slots) {
          if (waits[at(slot)]) copy_out(slot, cursors, args, offset + done, size);
        }
      }
    });
  }

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  Cursor cursor(std::size_t slot, bool waits, const KernelArgs& args, std::int64_t offset,
                const Loop::Offsets& from, std::byte* scratch) const {
    const Slot& one = program_.slots[slot];
    const auto buffer = [&](int index) {
      return Cursor{scratch + at(index) * at(static_cast<int>(program_.block)) * program_.width, 0,
                    1};
    };
    switch (one.kind) {
      case Slot::Kind::input: {
        const std::int64_t step = loop_.inner_steps()[at(one.index)];
        auto* const start = static_cast<std::byte*>(const_cast<void*>(args.inputs[at(one.index)]));
        return {start + at_bytes(from[at(one.index)], one.width), at_bytes(step, one.width), step};
      }
      case Slot::Kind::constant:
        return {static_cast<std::byte*>(program_.constants[at(one.index)].data()), 0, 0};
      case Slot::Kind::output:
        if (waits) return buffer(program_.waiting_buffer[slot]);
        return {args.output<std::byte>(one.index) + at_bytes(offset, one.width), one.width, 1};
      case Slot::Kind::buffer:
        break;
    }
    return buffer(one.index);
  }

  void run_links(const std::array<Cursor, kMostChainValues>& cursors, std::int64_t done,
                 std::int64_t size) const {
    for (const Link& link : program_.links) {
      std::array<RunOperand, kMostLinkInputs> x;
      for (std::size_t i = 0; i < link.from_count; ++i) {
        if (link.from[i] < 0) {
          x[i] = {nullptr, 0};
        } else {
          const Cursor& from = cursors[at(link.from[i])];
          x[i] = {from.at(done), from.step};
        }
      }
      link.run(size, {x.data(), link.from_count}, cursors[at(link.to)].at(done));
    }
  }

  void copy_out(int slot, const std::array<Cursor, kMostChainValues>& cursors,
                const KernelArgs& args, std::int64_t offset, std::int64_t size) const {
    const Slot& one = program_.slots[at(slot)];
    std::memcpy(args.output<std::byte>(one.index) + at_bytes(offset, one.width),
                cursors[at(slot)].start, at_bytes(size, one.width));
  }

  static std::size_t at_bytes(std::int64_t elements, std::size_t width) {
    return static_cast<std::size_t>(elements) * width;
  }

  Program program_;
  Loop loop_;
};

Kernel make_chain(KernelRequest& request) {
  const std::unique_ptr<Graph> body = typed_body(request.node());
  Program program = ProgramBuilder(*body, request.device()).run();
  if (program.links.empty()) return {};
  std::array<Shape, kMostChainInputs> shapes;
  for (int i = 0; i < request.input_count(); ++i) {
    shapes[static_cast<std::size_t>(i)] = request.shape(i);
  }
  // One copy for all copies of the kernel.
  const auto kernel =
      std::make_shared<const ChainKernel>(std::move(program), Loop(request.output().shape, shapes));
  return [kernel](const KernelArgs& args) { (*kernel)(args); };
}

}  // namespace

void register_elementwise_chain_cpu(KernelRegistry& registry) {
  for (const std::string_view op : {"ElementwiseChain", "UpdateChain"}) {
    registry.add({.op = op,
                  .domain = kInternalDomain,
                  .name = "blocks",
                  .make = make_chain,
                  .serves_alike = true});
  }
}

}  // namespace graft
