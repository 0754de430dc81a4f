#include "core/passes/pattern.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "core/ops/alias.h"
#include "core/passes/pattern_form_internal.h"

namespace graft::passes {
namespace {

using Form = Pattern::Form;
using Kind = Form::Kind;

bool is_value(const Pattern& pattern) {
  return pattern.form().kind == Kind::value;
}

Pattern node_form(std::string_view type, std::string_view domain, std::vector<Pattern> inputs,
                  NodeTest test, bool commutes = false) {
  assert(inputs.size() <= Form::kMostInputs);
  // What may be any value is looked at last.
  if (commutes && is_value(inputs.front())) std::swap(inputs.front(), inputs.back());
  return Pattern(Form{.kind = Kind::node,
                      .parts = std::move(inputs),
                      .type = type,
                      .domain = domain,
                      .test = test,
                      .commutes = commutes});
}

Pattern commuting(std::string_view type, const Pattern& a, const Pattern& b) {
  if (a.form().kind == Kind::opt) return commuting(type, b, a);
  if (b.form().kind != Kind::opt) return node_form(type, "", {a, b}, nullptr, true);
  return either(node_form(type, "", {once(a), b.form().parts.front()}, nullptr, true), a);
}

/// A product or quotient of the two.
Pattern product(const Pattern& a, const Pattern& b, bool divides) {
  Form result{.kind = Kind::product};
  const auto take = [&](const Pattern& operand, bool is_divisor) {
    const Form& form = operand.form();
    if (form.kind == Kind::literal || (form.kind == Kind::product && !form.scale)) {
      result.number = is_divisor ? result.number / form.number : result.number * form.number;
      for (const Form::Factor& factor : form.factors) {
        result.factors.push_back({factor.pattern, factor.divides != is_divisor});
      }
    } else {
      result.factors.push_back({operand, is_divisor});
    }
  };
  take(a, false);
  take(b, divides);
  std::ranges::stable_partition(result.factors,
                                [](const Form::Factor& f) { return !is_value(f.pattern); });
  return Pattern(std::move(result));
}

}  // namespace

Pattern::Pattern(Form form) : form_(std::make_shared<const Form>(std::move(form))) {}
Pattern::Pattern(double number) : Pattern(Form{.kind = Kind::literal, .number = number}) {}

Pattern any() {
  return Pattern(Form{.kind = Kind::value});
}
Pattern any_number() {
  return Pattern(Form{.kind = Kind::number});
}
Pattern op(std::string_view type, std::vector<Pattern> inputs, NodeTest test) {
  return node_form(type, "", std::move(inputs), test);
}
Pattern internal_op(std::string_view type, std::vector<Pattern> inputs, NodeTest test) {
  return node_form(type, kInternalDomain, std::move(inputs), test);
}
Pattern op_where(NodeTest test, std::vector<Pattern> inputs) {
  return node_form("", "", std::move(inputs), test);
}
Pattern once(const Pattern& value) {
  return value.form().kind == Kind::once ? value
                                         : Pattern(Form{.kind = Kind::once, .parts = {value}});
}
Pattern either(const Pattern& first, const Pattern& second) {
  return Pattern(Form{.kind = Kind::either, .parts = {first, second}});
}
Pattern or_none(const Pattern& value) {
  return Pattern(Form{.kind = Kind::or_none, .parts = {value}});
}
Pattern opt(const Pattern& operand) {
  return Pattern(Form{.kind = Kind::opt, .parts = {operand}});
}
Pattern through(StepTest test, const Pattern& start) {
  return Pattern(Form{.kind = Kind::through, .parts = {start}, .step = test});
}
Pattern through_views(const Pattern& value) {
  return through([](const Node& node, int index) { return index == 0 && is_view(node); },
                 once(value));
}
Pattern scaled(const Pattern& value, const Pattern& factor) {
  return Pattern(Form{.kind = Kind::product, .factors = {{value}}, .scale = factor});
}

Pattern operator+(const Pattern& a, const Pattern& b) {
  return commuting("Add", a, b);
}
Pattern operator-(const Pattern& a, const Pattern& b) {
  return op("Sub", {a, b});
}
Pattern operator*(const Pattern& a, const Pattern& b) {
  const bool has_opt = a.form().kind == Kind::opt || b.form().kind == Kind::opt;
  return has_opt ? commuting("Mul", a, b) : product(a, b, false);
}
Pattern operator/(const Pattern& a, const Pattern& b) {
  return product(a, b, true);
}
Pattern sqrt(const Pattern& x) {
  return op("Sqrt", {x});
}
Pattern sigmoid(const Pattern& x) {
  return op("Sigmoid", {x});
}
Pattern square(const Pattern& x) {
  return either(op("Pow", {x, 2.0}), commuting("Mul", x, x));
}
Pattern cube(const Pattern& x) {
  return either(op("Pow", {x, 3.0}), x * x * x);
}

}  // namespace graft::passes
