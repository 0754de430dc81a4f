#pragma once

namespace graft::cli {

/// All that the program does: one verb, with its arguments. Returns the exit code; throws nothing.
int command_line(int argc, char** argv);

}  // namespace graft::cli
