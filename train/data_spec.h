#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "data/csv.h"
#include "data/dataset.h"
#include "data/transforms.h"

namespace graft {

/// What a model takes: element types as NamedSamples::wanted, and kinds of targets.
struct WantedTypes {
  /// The types of the model's inputs, in order; those past the end are undefined.
  std::vector<DType> inputs{};
  /// The type that a target of floats becomes.
  DType target = DType::undefined;
  /// What the last column of a csv file means.
  CsvTarget csv_target = CsvTarget::automatic;
};

/// A data set by its spec, as on the command line: what `open_dataset` takes, and `npz:FILE`.
///
/// An npz file holds the samples of each array along its first axis. The target is the array called
/// "target", "targets", "label", "labels" or "y"; all others are inputs, in the file's order. In
/// files that have none of these names, those that begin with one and '_' ("target_boxes") are
/// several targets.
/// Arrays whose names end in "_train" and "_test" ("x_train", "y_test") belong to those splits;
/// without such names both splits are the whole file. `wanted` is for npz and csv files: others
/// hold f32 and i64. Throws Error{argument} for an unknown form, Error{io} if an npz file has no
/// target or no input for the split, and what the source throws.
std::shared_ptr<Dataset> open_data(std::string_view spec, Split split,
                                   const WantedTypes& wanted = {});

/// Whether the source keeps samples apart to test with. Of an npz file: whether it has arrays whose
/// names end in "_test"; throws what reading it throws.
bool has_test_split(std::string_view spec);

/// Takes the pixels of a known data set to mean 0 and deviation 1 by the statistics of its training
/// split; nothing when they are not known.
std::optional<Normalize> known_normalization(std::string_view spec);

}  // namespace graft
