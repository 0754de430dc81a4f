#pragma once

#include <graft/loss.h>
#include <nanobind/nanobind.h>

#include <memory>
#include <utility>

namespace graft::python {

/// A value of a graph under construction in the hands of Python, which may keep it for longer than
/// the graph lives: it then refuses to be used. A number stands for a constant of the type of what
/// it meets.
class GraphValue {
 public:
  GraphValue(Expr expr, std::shared_ptr<const bool> is_open)
      : expr_(std::move(expr)), is_open_(std::move(is_open)) {}

  /// Throws Error{argument} once the graph has been built.
  const Expr& expr() const;
  /// Another value of the same graph.
  GraphValue with(Expr expr) const { return {std::move(expr), is_open_}; }

 private:
  Expr expr_;
  std::shared_ptr<const bool> is_open_;
};

/// Gives values to a Python function and takes them back when it has returned.
class Formula {
 public:
  Formula() : is_open_(std::make_shared<bool>(true)) {}
  ~Formula() { *is_open_ = false; }
  Formula(const Formula&) = delete;
  Formula& operator=(const Formula&) = delete;

  nanobind::object give(const Expr& expr) const;
  /// Throws Error{type}, naming `who`, if the object is no value of a graph.
  static Expr take(nanobind::handle object, const char* who);

 private:
  std::shared_ptr<bool> is_open_;
};

}  // namespace graft::python
