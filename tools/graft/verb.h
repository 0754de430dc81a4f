#pragma once

#include <functional>

#include "core/base/error.h"

namespace CLI {
class App;
}

namespace graft::cli {

/// What the process returns.
enum ExitCode : int {
  ok = 0,
  wrong_use = 1,
  bad_input = 2,  ///< a bad model or bad data
  out_of_memory = 3,
  interrupted = 4,  ///< what was reached is saved
  not_finite = 5,   ///< a computation gave NaN or infinity
};

ExitCode exit_code(ErrorKind kind);

/// Does what the verb says, once its arguments are parsed. Throws graft::Error.
using Run = std::function<ExitCode()>;

/// A row of the list in main.cpp.
struct Verb {
  const char* name;
  const char* description;
  /// The heading under which the help lists it.
  const char* group;
  /// What to write behind `graft`.
  const char* example;
  /// Declares the arguments.
  Run (*add)(CLI::App& app);
};

// Each declares the arguments of its verb. To add a verb: a file with such a function, a line here
// and a row in main.cpp.
Run add_new(CLI::App& app);
Run add_inspect(CLI::App& app);
Run add_run(CLI::App& app);
Run add_train(CLI::App& app);
Run add_eval(CLI::App& app);
Run add_predict(CLI::App& app);
Run add_lr_find(CLI::App& app);
Run add_edit(CLI::App& app);
Run add_test(CLI::App& app);
Run add_bench(CLI::App& app);
Run add_devices(CLI::App& app);
Run add_export_step(CLI::App& app);
Run add_ops(CLI::App& app);
Run add_plot(CLI::App& app);
Run add_report(CLI::App& app);
Run add_doctor(CLI::App& app);
Run add_completion(CLI::App& app);
Run add_man(CLI::App& app);

}  // namespace graft::cli
