#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/ops/registry.h"

namespace graft::test {

/// One sample of one op: a test of its own.
struct SampleCase {
  const OpDef* def;
  Sample sample;
};

/// Shown where a test fails.
inline void PrintTo(const SampleCase& one, std::ostream* out) {
  *out << one.def->name << " on sample " << one.sample.name;
}

inline std::string case_name(const testing::TestParamInfo<SampleCase>& info) {
  return std::string(info.param.def->name) + "_" + info.param.sample.name;
}

/// All samples of the ops that `wants` holds for.
template <class Wants>
std::vector<SampleCase> sample_cases(const Wants& wants) {
  std::vector<SampleCase> cases;
  for (const OpDef& def : OpRegistry::instance().all()) {
    if (!wants(def)) continue;
    for (Sample& sample : def.samples()) cases.push_back({&def, std::move(sample)});
  }
  return cases;
}

}  // namespace graft::test
