"""Functions of graph values, for losses and optimizers of one's own.

They add a node each to the graph that is being built; `call` adds any op of ONNX. Operands may be
numbers and arrays too, as long as one is a graph value: they become constants of its type.
"""

from __future__ import annotations

from typing import Any

from ._core import GraphValue, call, where

__all__ = ["call", "exp", "log", "log_softmax", "maximum", "minimum", "relu", "sigmoid", "softmax",
           "softplus", "sqrt", "tanh", "where"]


def exp(x: GraphValue) -> GraphValue:
    """e to the power of each element."""
    return call("Exp", x)


def log(x: GraphValue) -> GraphValue:
    """The natural logarithm of each element."""
    return call("Log", x)


def sqrt(x: GraphValue) -> GraphValue:
    """The square root of each element."""
    return call("Sqrt", x)


def sigmoid(x: GraphValue) -> GraphValue:
    """1 / (1 + exp(-x))."""
    return call("Sigmoid", x)


def tanh(x: GraphValue) -> GraphValue:
    """The hyperbolic tangent."""
    return call("Tanh", x)


def relu(x: GraphValue) -> GraphValue:
    """max(x, 0)."""
    return call("Relu", x)


def softplus(x: GraphValue) -> GraphValue:
    """log(1 + exp(x)), without overflow."""
    return call("Softplus", x)


def softmax(x: GraphValue, axis: int = -1) -> GraphValue:
    """exp(x) over its sum along `axis`."""
    return call("Softmax", x, axis=axis)


def log_softmax(x: GraphValue, axis: int = -1) -> GraphValue:
    """The logarithm of the softmax."""
    return call("LogSoftmax", x, axis=axis)


def maximum(a: Any, b: Any) -> GraphValue:
    """The larger of each two elements."""
    return call("Max", a, b)


def minimum(a: Any, b: Any) -> GraphValue:
    """The smaller of each two elements."""
    return call("Min", a, b)
