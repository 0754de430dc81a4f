#include "tools/graft/command_line.h"

int main(int argc, char** argv) {
  return graft::cli::command_line(argc, argv);
}
