#pragma once

#include <string>

namespace graft {

/// How many threads of this process can run at a time: by its affinity, and by the processor time
/// that its control groups grant it. At least 1.
int processors_of_process();

/// What the control groups grant (versions 1 and 2; the least of the group and those around it),
/// rounded up to whole processors; 0 where they set no limit. Files are read below `root`, which is
/// empty for the machine's own.
int processors_by_quota(const std::string& root);

}  // namespace graft
