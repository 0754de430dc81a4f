#include "core/ops/text/regex_parser.h"

#include <array>
#include <optional>

#include "core/base/error.h"

namespace graft {
namespace {

using Node = RegexNode;
using NodePtr = std::unique_ptr<Node>;
using Range = RegexNode::Range;

constexpr int kDeepest = 200;
constexpr int kMostRepeats = 1000;  // RE2's limit
constexpr char32_t kLast = 0x10ffff;

std::vector<Range> complement(const std::vector<Range>& ranges) {
  // The classes below are sorted and do not touch.
  std::vector<Range> result;
  char32_t next = 0;
  for (const Range& range : ranges) {
    if (range.first > next) result.push_back({next, range.first - 1});
    next = range.last + 1;
  }
  result.push_back({next, kLast});
  return result;
}

/// \d, \s, \w and their opposites.
std::optional<std::vector<Range>> escaped_class(char32_t letter) {
  static const std::vector<Range> digits{{'0', '9'}};
  static const std::vector<Range> spaces{{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}};
  static const std::vector<Range> words{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
  switch (letter) {
    case 'd':
      return digits;
    case 'D':
      return complement(digits);
    case 's':
      return spaces;
    case 'S':
      return complement(spaces);
    case 'w':
      return words;
    case 'W':
      return complement(words);
    default:
      return std::nullopt;
  }
}

struct NamedClass {
  std::u32string_view name;
  std::vector<Range> ranges;
};

const std::vector<NamedClass>& posix_classes() {
  static const std::vector<NamedClass> classes{
      {U"alnum", {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}},
      {U"alpha", {{'A', 'Z'}, {'a', 'z'}}},
      {U"blank", {{'\t', '\t'}, {' ', ' '}}},
      {U"digit", {{'0', '9'}}},
      {U"lower", {{'a', 'z'}}},
      {U"punct", {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}},
      {U"space", {{'\t', '\r'}, {' ', ' '}}},
      {U"upper", {{'A', 'Z'}}},
      {U"word", {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}},
      {U"xdigit", {{'0', '9'}, {'A', 'F'}, {'a', 'f'}}}};
  return classes;
}

class Parser {
 public:
  explicit Parser(std::string_view pattern) : pattern_(code_points(pattern)) {}

  NodePtr run() {
    NodePtr node = choice(0);
    if (at_ < pattern_.size()) refuse("a ')' has no '('");
    return node;
  }

 private:
  template <class... Args>
  [[noreturn]] void refuse(const Args&... args) const {
    fail(ErrorKind::model, "regular expression: ", args..., " (at character ", at_, ")");
  }

  bool has(char32_t c) const { return at_ < pattern_.size() && pattern_[at_] == c; }
  bool take(char32_t c) {
    if (!has(c)) return false;
    ++at_;
    return true;
  }
  bool take(std::u32string_view text) {
    if (std::u32string_view(pattern_).substr(at_, text.size()) != text) return false;
    at_ += text.size();
    return true;
  }
  char32_t next() {
    if (at_ == pattern_.size()) refuse("it ends too early");
    return pattern_[at_++];
  }

  static NodePtr make(Node::Kind kind) {
    auto node = std::make_unique<Node>();
    node->kind = kind;
    return node;
  }
  static NodePtr make_set(std::vector<Range> ranges, bool negated = false) {
    NodePtr node = make(Node::Kind::set);
    node->ranges = std::move(ranges);
    node->negated = negated;
    return node;
  }

  NodePtr choice(int depth) {
    if (depth > kDeepest) refuse("groups nest deeper than ", kDeepest);
    NodePtr node = make(Node::Kind::choice);
    do {
      node->children.push_back(sequence(depth));
    } while (take('|'));
    return node;
  }

  NodePtr sequence(int depth) {
    NodePtr node = make(Node::Kind::sequence);
    while (at_ < pattern_.size() && !has('|') && !has(')')) {
      node->children.push_back(repeated(atom(depth)));
    }
    return node;
  }

  NodePtr repeated(NodePtr node) {
    for (;;) {
      int least = 0;
      int most = -1;
      if (take('+')) {
        least = 1;
      } else if (take('?')) {
        most = 1;
      } else if (!take('*') && !take_counts(least, most)) {
        return node;
      }
      take('?');  // lazy or greedy, the whole text matches or does not
      NodePtr repeat = make(Node::Kind::repeat);
      repeat->least = least;
      repeat->most = most;
      repeat->children.push_back(std::move(node));
      node = std::move(repeat);
      if (++repeats_ > kMostRepeats) refuse("it has more than ", kMostRepeats, " repetitions");
    }
  }

  std::optional<int> take_number() {
    std::optional<int> number;
    while (at_ < pattern_.size() && pattern_[at_] >= '0' && pattern_[at_] <= '9') {
      number = number.value_or(0) * 10 + static_cast<int>(pattern_[at_++] - '0');
      if (*number > kMostRepeats) refuse("a count is over ", kMostRepeats);
    }
    return number;
  }

  /// "{2}", "{2,}", "{2,5}"; other braces are literals.
  bool take_counts(int& least, int& most) {
    const std::size_t start = at_;
    if (!take('{')) return false;
    const std::optional<int> from = take_number();
    std::optional<int> to = from;
    const bool has_comma = take(',');
    if (has_comma) to = take_number();
    if (!from || !take('}')) {
      at_ = start;
      return false;
    }
    least = *from;
    most = to.value_or(-1);
    if (most >= 0 && most < least) refuse("a range of counts is empty");
    return true;
  }

  NodePtr atom(int depth) {
    const char32_t c = next();
    switch (c) {
      case '(':
        return group(depth);
      case '[':
        return bracket();
      case '.':
        return make_set({{'\n', '\n'}}, true);
      case '^':
        return make(Node::Kind::begin);
      case '$':
        return make(Node::Kind::end);
      case '\\':
        return escape();
      case '*':
      case '+':
      case '?':
        refuse("there is nothing to repeat");
      default:
        // A brace that is no count, as in "a{", is a literal.
        return make_set({{c, c}});
    }
  }

  NodePtr group(int depth) {
    if (take('?')) {
      const bool is_named = take(U"P<") || take('<');
      if (is_named) {
        while (next() != '>') continue;
      } else if (!take(':')) {
        fail(ErrorKind::unsupported,
             "regular expression: flags and looks ahead and behind are not ",
             "taken (at character ", at_, ")");
      }
    }
    NodePtr node = choice(depth + 1);
    if (!take(')')) refuse("a '(' has no ')'");
    return node;
  }

  NodePtr escape() {
    const char32_t c = next();
    if (auto ranges = escaped_class(c)) return make_set(*std::move(ranges));
    switch (c) {
      case 'A':
        return make(Node::Kind::begin);
      case 'z':
        return make(Node::Kind::end);
      case 'b':
        return make(Node::Kind::word_edge);
      case 'B':
        return make(Node::Kind::no_word_edge);
      default: {
        const char32_t literal = escaped_literal(c);
        return make_set({{literal, literal}});
      }
    }
  }

  char32_t escaped_literal(char32_t c) {
    switch (c) {
      case 'a':
        return '\a';
      case 'f':
        return '\f';
      case 'n':
        return '\n';
      case 'r':
        return '\r';
      case 't':
        return '\t';
      case 'v':
        return '\v';
      case 'x':
        return hexadecimal();
      default:
        break;
    }
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (is_letter || (c >= '0' && c <= '9')) {
      fail(ErrorKind::unsupported, "regular expression: the escape \\", static_cast<char>(c),
           " is not taken (at character ", at_, ")");
    }
    return c;
  }

  char32_t hexadecimal() {
    const bool is_braced = take('{');
    char32_t value = 0;
    for (int digits = 0; is_braced ? !take('}') : digits < 2; ++digits) {
      const char32_t c = next();
      const bool is_digit = c >= '0' && c <= '9';
      const char32_t lower = c | 0x20U;
      if (!is_digit && (lower < 'a' || lower > 'f')) refuse("\\x is not followed by digits");
      value = value * 16 + (is_digit ? c - '0' : lower - 'a' + 10);
      if (value > kLast) refuse("\\x is over 10ffff");
    }
    return value;
  }

  NodePtr bracket() {
    const bool negated = take('^');
    std::vector<Range> ranges;
    bool is_first = true;  // "]" may stand first
    while (is_first || !has(']')) {
      is_first = false;
      bracket_entry(ranges);
    }
    ++at_;
    return make_set(std::move(ranges), negated);
  }

  void bracket_entry(std::vector<Range>& ranges) {
    if (take(U"[:")) return named_class(ranges);
    char32_t first = next();
    if (first == '\\') {
      const char32_t c = next();
      if (const auto found = escaped_class(c)) {
        ranges.insert(ranges.end(), found->begin(), found->end());
        return;
      }
      first = escaped_literal(c);
    }
    char32_t last = first;
    const bool is_range = has('-') && at_ + 1 < pattern_.size() && pattern_[at_ + 1] != ']';
    if (is_range) {
      ++at_;
      last = next();
      if (last == '\\') last = escaped_literal(next());
      if (last < first) refuse("a range of characters is empty");
    }
    ranges.push_back({first, last});
  }

  void named_class(std::vector<Range>& ranges) {
    const bool negated = take('^');
    for (const NamedClass& known : posix_classes()) {
      if (!take(std::u32string(known.name) + U":]")) continue;
      const std::vector<Range> own = negated ? complement(known.ranges) : known.ranges;
      ranges.insert(ranges.end(), own.begin(), own.end());
      return;
    }
    refuse("a class in [: :] is unknown");
  }

  std::u32string pattern_;
  std::size_t at_ = 0;
  int repeats_ = 0;
};

}  // namespace

std::unique_ptr<RegexNode> parse_regex(std::string_view pattern) {
  return Parser(pattern).run();
}

std::u32string code_points(std::string_view text) {
  std::u32string result;
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const std::size_t more = lead < 0xc0 ? 0 : lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;
    char32_t value = more == 0 ? lead : lead & (0x3fU >> more);
    bool is_valid = i + more < text.size() && lead < 0xf8;
    for (std::size_t k = 1; is_valid && k <= more; ++k) {
      const auto byte = static_cast<unsigned char>(text[i + k]);
      is_valid = (byte & 0xc0U) == 0x80;
      value = (value << 6U) | (byte & 0x3fU);
    }
    result.push_back(is_valid ? value : lead);
    i += is_valid ? more + 1 : 1;
  }
  return result;
}

}  // namespace graft
