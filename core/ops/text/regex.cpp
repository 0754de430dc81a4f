#include <algorithm>

#include "core/base/error.h"
#include "core/ops/text/regex.h"
#include "core/ops/text/regex_parser.h"

namespace graft {
namespace {

constexpr std::size_t kMostStates = 20'000;

bool is_word(char32_t c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

}  // namespace

/// Writes the tree as instructions; each falls through to the next unless it says otherwise.
class RegexCompiler {
 public:
  explicit RegexCompiler(Regex& regex) : regex_(regex) {}

  void run(const RegexNode& root) {
    write(root);
    add({Regex::Op::match});
  }

 private:
  using Op = Regex::Op;
  using Kind = RegexNode::Kind;

  std::size_t here() const { return regex_.program_.size(); }

  std::size_t add(Regex::Instruction instruction) {
    if (here() >= kMostStates) {
      fail(ErrorKind::unsupported, "regular expression: it has more than ", kMostStates, " states");
    }
    regex_.program_.push_back(instruction);
    regex_.program_.back().next = here();
    return here() - 1;
  }

  void write(const RegexNode& node) {
    switch (node.kind) {
      case Kind::empty:
        return;
      case Kind::set:
        return write_set(node);
      case Kind::sequence:
        for (const auto& child : node.children) write(*child);
        return;
      case Kind::choice:
        return write_choice(node);
      case Kind::repeat:
        return write_repeat(node);
      case Kind::begin:
        add({Op::begin});
        return;
      case Kind::end:
        add({Op::end});
        return;
      case Kind::word_edge:
        add({Op::word_edge});
        return;
      case Kind::no_word_edge:
        add({Op::no_word_edge});
        return;
    }
  }

  void write_set(const RegexNode& node) {
    Regex::Set set{{}, node.negated};
    for (const auto& range : node.ranges) set.ranges.push_back({range.first, range.last});
    add({Op::set, regex_.sets_.size()});
    regex_.sets_.push_back(std::move(set));
  }

  void write_choice(const RegexNode& node) {
    std::vector<std::size_t> jumps;
    for (std::size_t i = 0; i + 1 < node.children.size(); ++i) {
      const std::size_t split = add({Op::split});
      write(*node.children[i]);
      jumps.push_back(add({Op::jump}));
      regex_.program_[split].other = here();
    }
    write(*node.children.back());
    for (const std::size_t jump : jumps) regex_.program_[jump].next = here();
  }

  void write_repeat(const RegexNode& node) {
    const RegexNode& child = *node.children.front();
    for (int i = 0; i < node.least; ++i) write_turn(child);
    if (node.most < 0) {
      const std::size_t split = add({Op::split});
      write_turn(child);
      const std::size_t jump = add({Op::jump});
      regex_.program_[jump].next = split;
      regex_.program_[split].other = here();
      return;
    }
    std::vector<std::size_t> splits;
    for (int i = node.least; i < node.most; ++i) {
      splits.push_back(add({Op::split}));
      write_turn(child);
    }
    for (const std::size_t split : splits) regex_.program_[split].other = here();
  }

  /// Empty turns cost nothing to write: counts of counts of nothing must still end.
  void write_turn(const RegexNode& child) {
    if (++turns_ > kMostStates) {
      fail(ErrorKind::unsupported, "regular expression: its counts multiply to more than ",
           kMostStates);
    }
    write(child);
  }

  Regex& regex_;
  std::size_t turns_ = 0;
};

bool Regex::Set::has(char32_t c) const {
  const bool is_in = std::ranges::any_of(
      ranges, [c](const Range& range) { return range.first <= c && c <= range.last; });
  return is_in != negated;
}

/// The instructions that wait for the next character, each once.
struct Regex::Threads {
  explicit Threads(std::size_t size) : seen(size) {}

  void clear() {
    for (const std::size_t state : touched) seen[state] = false;
    touched.clear();
    waiting.clear();
    matched = false;
  }

  std::vector<bool> seen;
  std::vector<std::size_t> touched;
  std::vector<std::size_t> waiting;
  bool matched = false;
};

Regex::Regex(std::string_view pattern) {
  RegexCompiler(*this).run(*parse_regex(pattern));
}

void Regex::follow(Threads& threads, std::size_t start, std::u32string_view text,
                   std::size_t at) const {
  const bool before = at > 0 && is_word(text[at - 1]);
  const bool after = at < text.size() && is_word(text[at]);
  std::vector<std::size_t> open{start};
  while (!open.empty()) {
    const std::size_t state = open.back();
    open.pop_back();
    if (threads.seen[state]) continue;
    threads.seen[state] = true;
    threads.touched.push_back(state);
    const Instruction& instruction = program_[state];
    bool passes = true;
    switch (instruction.op) {
      case Op::set:
        threads.waiting.push_back(state);
        passes = false;
        break;
      case Op::match:
        threads.matched = true;
        passes = false;
        break;
      case Op::split:
        open.push_back(instruction.other);
        break;
      case Op::jump:
        break;
      case Op::begin:
        passes = at == 0;
        break;
      case Op::end:
        passes = at == text.size();
        break;
      case Op::word_edge:
        passes = before != after;
        break;
      case Op::no_word_edge:
        passes = before == after;
        break;
    }
    if (passes) open.push_back(instruction.next);
  }
}

bool Regex::full_match(std::string_view bytes) const {
  const std::u32string text = code_points(bytes);
  Threads now(program_.size());
  Threads then(program_.size());
  follow(now, 0, text, 0);
  for (std::size_t at = 0; at < text.size(); ++at) {
    then.clear();
    for (const std::size_t state : now.waiting) {
      const Instruction& instruction = program_[state];
      if (sets_[instruction.set].has(text[at])) follow(then, instruction.next, text, at + 1);
    }
    std::swap(now, then);
  }
  return now.matched;
}

}  // namespace graft
