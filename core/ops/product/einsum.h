#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace graft {

/// An axis of an einsum: a letter, or, from kEllipsis on, an axis of "...", counted from the last.
using Label = int;
inline constexpr Label kEllipsis = 256;

/// Which axis of which operand goes where, with "..." written out.
struct EinsumTerms {
  std::vector<std::vector<Label>> inputs;
  std::vector<Label> output;
};

/// Parses "ij,jk->ik" for operands of these ranks. Without "->" the output has the axes of "..."
/// and then, in alphabetical order, the letters that occur once (numpy.einsum). Throws Error{model}
/// if the equation is malformed or does not fit the ranks; `who` starts the message.
EinsumTerms parse_einsum(std::string_view equation, const std::vector<int>& ranks,
                         std::string_view who);

}  // namespace graft
