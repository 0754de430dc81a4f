#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/graph/model.h"
#include "data/dataset.h"
#include "tools/graft/judge.h"
#include "tools/graft/run_record.h"

namespace graft::cli {

/// A run with what is found out from its model and data; what is absent is left out of the page.
struct RunSection {
  RunRecord run;
  /// The model with types inferred; without nodes where there is none.
  Model net = {};
  std::shared_ptr<Dataset> data = {};
  /// As the file or else the data say.
  std::vector<std::string> class_names = {};
  /// "fashion-mnist, test".
  std::string data_name = {};
  std::optional<Judgement> judgement = {};
  /// Text of a table.
  std::string profile = {};
  /// What could not be found out, and why.
  std::vector<std::string> notes = {};
};

/// One HTML page that needs nothing beside itself: curves and settings of all runs together, then
/// each run's confusion matrix, worst pictures, net and step profile side by side.
std::string report_page(std::span<const RunSection> sections);

}  // namespace graft::cli
