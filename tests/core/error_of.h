#pragma once

#include <gtest/gtest.h>

#include "core/base/error.h"

namespace graft {

/// The error that `action` throws; the test fails if it throws none.
template <class Action>
Error error_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return {ErrorKind::io, "nothing was thrown"};
}

template <class Action>
ErrorKind kind_of(const Action& action) {
  return error_of(action).kind();
}

}  // namespace graft
