#pragma once

namespace graft::cli {

/// While data are read there is nothing to save: from now on Ctrl-C, a request to end, or the loss
/// of the terminal ends the process at once; of several ranks, only the first `says` so.
void end_when_interrupted(bool says);

/// From now on they let `stop_asked` be true: training stops after the step, a measurement before
/// its next batch, and what was reached is saved. The second of a kind ends the process.
void stop_when_interrupted();

bool stop_asked();
/// As if a signal had come: it came to another rank.
void ask_to_stop();

/// A reader that goes away (`| head -1`), or a terminal that does, must not end the training: its
/// lines are lost, the model is not.
void outlive_readers();

}  // namespace graft::cli
