#include <algorithm>
#include <cctype>
#include <map>

#include "core/base/error.h"
#include "core/ops/product/einsum.h"

namespace graft {
namespace {

std::string without_spaces(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c != ' ') result += c;
  }
  return result;
}

std::vector<std::string> split(const std::string& text, char by) {
  std::vector<std::string> parts{""};
  for (const char c : text) {
    if (c == by) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

/// The labels of one term; "..." stands for `ellipsis` axes. The number of letters of the term is
/// what remains of its rank.
class Term {
 public:
  Term(std::string_view text, std::string_view who) {
    for (std::size_t i = 0; i < text.size();) {
      if (text.substr(i, 3) == "...") {
        if (has_ellipsis_) fail(ErrorKind::model, who, ": two '...' in term '", text, "'");
        has_ellipsis_ = true;
        before_ = letters_.size();
        i += 3;
      } else if (std::isalpha(static_cast<unsigned char>(text[i])) != 0) {
        letters_.push_back(text[i++]);
      } else {
        fail(ErrorKind::model, who, ": '", text[i], "' in term '", text,
             "', wanted letters or ...");
      }
    }
  }

  bool has_ellipsis() const { return has_ellipsis_; }
  int letter_count() const { return static_cast<int>(letters_.size()); }
  const std::vector<Label>& letters() const { return letters_; }

  std::vector<Label> labels(int ellipsis) const {
    std::vector<Label> result(letters_.begin(),
                              letters_.begin() + static_cast<std::ptrdiff_t>(before_));
    if (!has_ellipsis_) return letters_;
    for (int i = ellipsis; i-- > 0;) result.push_back(kEllipsis + i);
    result.insert(result.end(), letters_.begin() + static_cast<std::ptrdiff_t>(before_),
                  letters_.end());
    return result;
  }

 private:
  std::vector<Label> letters_;
  std::size_t before_ = 0;  // letters before the ellipsis
  bool has_ellipsis_ = false;
};

std::vector<Label> implicit_output(const std::vector<Term>& terms, int ellipsis) {
  std::map<Label, int> counts;
  for (const Term& term : terms) {
    for (const Label letter : term.letters()) ++counts[letter];
  }
  std::vector<Label> output;
  for (int i = ellipsis; i-- > 0;) output.push_back(kEllipsis + i);
  for (const auto& [letter, count] : counts) {
    if (count == 1) output.push_back(letter);
  }
  return output;
}

void check_output(const EinsumTerms& terms, std::string_view who) {
  for (const Label label : terms.output) {
    if (std::ranges::count(terms.output, label) != 1) {
      fail(ErrorKind::model, who, ": '", static_cast<char>(label), "' comes twice in the output");
    }
    const bool known = label >= kEllipsis ||
                       std::ranges::any_of(terms.inputs, [&](const std::vector<Label>& input) {
                         return std::ranges::find(input, label) != input.end();
                       });
    if (!known) {
      fail(ErrorKind::model, who, ": '", static_cast<char>(label),
           "' of the output is in no input");
    }
  }
}

}  // namespace

EinsumTerms parse_einsum(std::string_view equation, const std::vector<int>& ranks,
                         std::string_view who) {
  const std::string text = without_spaces(equation);
  const std::size_t arrow = text.find("->");
  const std::vector<std::string> parts = split(text.substr(0, arrow), ',');
  if (parts.size() != ranks.size()) {
    fail(ErrorKind::model, who, ": equation '", equation, "' has ", parts.size(), " terms for ",
         ranks.size(), " inputs");
  }
  std::vector<Term> terms;
  int ellipsis = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Term& term = terms.emplace_back(parts[i], who);
    const int rest = ranks[i] - term.letter_count();
    if (rest < 0 || (rest > 0 && !term.has_ellipsis())) {
      fail(ErrorKind::model, who, ": term '", parts[i], "' does not fit an input of rank ",
           ranks[i]);
    }
    ellipsis = std::max(ellipsis, rest);
  }
  EinsumTerms result;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    result.inputs.push_back(terms[i].labels(ranks[i] - terms[i].letter_count()));
  }
  if (arrow == std::string::npos) {
    result.output = implicit_output(terms, ellipsis);
  } else {
    const std::string out = text.substr(arrow + 2);
    result.output = Term(out, who).labels(ellipsis);
  }
  check_output(result, who);
  return result;
}

}  // namespace graft
