#pragma once

#include <optional>

#include "core/passes/pattern.h"

namespace graft::passes {

/// What a pattern consists of.
struct Pattern::Form {
  enum class Kind { value, number, literal, node, product, once, either, opt, or_none, through };
  struct Factor {
    Pattern pattern;
    bool divides = false;
  };

  static constexpr std::size_t kMostInputs = 5;

  Kind kind;
  std::vector<Pattern> parts{};
  std::string_view type{};  ///< of a node; empty: as the test says
  std::string_view domain{};
  NodeTest test = nullptr;
  StepTest step = nullptr;
  bool commutes = false;
  std::vector<Factor> factors{};   ///< of a product: what may be any value comes last
  double number = 1.0;             ///< of a literal, and of the constants in a product
  std::optional<Pattern> scale{};  ///< takes in those constants instead
};

}  // namespace graft::passes
