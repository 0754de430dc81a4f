#pragma once

#include "core/ops/kernels/vector_math.h"
#include "core/ops/recurrent/recurrent.h"

/// Activations of recurrent cells, in three steps: `apply` to the input gives what is saved;
/// `value` and `slope` of that are the result and the derivative. The fast ones save the result,
/// the listed ones their input.
namespace graft::recurrent {

template <class T>
struct Sigmoid {
  T apply(T x) const { return vector_math::sigmoid(x); }
  T value(T saved) const { return saved; }
  T slope(T saved) const { return saved * (T{1} - saved); }
};

template <class T>
struct Tanh {
  T apply(T x) const { return vector_math::tanh(x); }
  T value(T saved) const { return saved; }
  T slope(T saved) const { return T{1} - saved * saved; }
};

/// Any function of the list, with clipping.
template <class T>
struct Listed {
  RecurrentActivation::Function function;
  T alpha;
  T beta;
  T clip;

  Listed(const RecurrentActivation& activation, double limit)
      : function(activation.function),
        alpha(static_cast<T>(activation.alpha)),
        beta(static_cast<T>(activation.beta)),
        clip(static_cast<T>(limit)) {}

  T apply(T x) const { return x; }
  T value(T saved) const;
  T slope(T saved) const;
};

template <class T>
T Listed<T>::value(T saved) const {
  using Function = RecurrentActivation::Function;
  const T x = saved < -clip ? -clip : (saved > clip ? clip : saved);
  switch (function) {
    case Function::sigmoid:
      return vector_math::sigmoid(x);
    case Function::tanh:
      return vector_math::tanh(x);
    case Function::relu:
      return x > 0 ? x : T{0};
    case Function::affine:
      return alpha * x + beta;
    case Function::leaky_relu:
      return x >= 0 ? x : alpha * x;
    case Function::thresholded_relu:
      return x > alpha ? x : T{0};
    case Function::scaled_tanh:
      return alpha * vector_math::tanh(beta * x);
    case Function::hard_sigmoid: {
      const T y = alpha * x + beta;
      return y < 0 ? T{0} : (y > 1 ? T{1} : y);
    }
    case Function::elu:
      return x >= 0 ? x : alpha * vector_math::expm1(x);
    case Function::softsign:
      return x / (T{1} + (x < 0 ? -x : x));
    case Function::softplus:
      return vector_math::softplus(x);
  }
  return x;
}

/// At kinks as the ops of the same names; 0 where the input is clipped.
template <class T>
T Listed<T>::slope(T saved) const {
  using Function = RecurrentActivation::Function;
  const T x = saved;
  if (x < -clip || x > clip) return T{0};
  switch (function) {
    case Function::sigmoid: {
      const T y = vector_math::sigmoid(x);
      return y * (T{1} - y);
    }
    case Function::tanh: {
      const T y = vector_math::tanh(x);
      return T{1} - y * y;
    }
    case Function::relu:
      return x > 0 ? T{1} : T{0};
    case Function::affine:
      return alpha;
    case Function::leaky_relu:
      return x > 0 ? T{1} : alpha;
    case Function::thresholded_relu:
      return x > alpha ? T{1} : T{0};
    case Function::scaled_tanh: {
      const T y = vector_math::tanh(beta * x);
      return alpha * beta * (T{1} - y * y);
    }
    case Function::hard_sigmoid: {
      const T y = alpha * x + beta;
      return y > 0 && y < 1 ? alpha : T{0};
    }
    case Function::elu:
      return x > 0 ? T{1} : alpha * vector_math::exp(x);
    case Function::softsign: {
      const T y = T{1} + (x < 0 ? -x : x);
      return T{1} / (y * y);
    }
    case Function::softplus:
      return vector_math::sigmoid(x);
  }
  return T{1};
}

}  // namespace graft::recurrent
