// The targets of the fuzzers on what is kept here: seeds, each input that has shown a mistake, and
// some hundred mutants of these. docs/fuzzing.md says how to run them for longer.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "io/file.h"
#include "io/onnx.h"
#include "tests/fuzz/models/mutate.h"
#include "tests/fuzz/target.h"

namespace graft::fuzz {
namespace {

struct Input {
  std::string name;
  std::string bytes;
};

/// Those of a folder of tests/fuzz, in the order of their names.
std::vector<Input> inputs_of(const Target& target, const std::string& folder) {
  std::vector<Input> inputs;
  const std::filesystem::path path =
      std::filesystem::path(GRAFT_SOURCE_DIR) / "tests/fuzz" / folder / target.name;
  if (!std::filesystem::is_directory(path)) return inputs;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    inputs.push_back({entry.path().filename(), read_file(entry.path(), 1 << 20)});
  }
  std::ranges::sort(inputs, {}, &Input::name);
  return inputs;
}

/// Bytes changed, taken out or put in at a few places.
std::string mutate_bytes(std::string bytes, Random& random) {
  const std::size_t changes = 1 + random.below(4);
  for (std::size_t i = 0; i < changes; ++i) {
    const std::size_t at = random.below(bytes.size());
    const auto any = static_cast<char>(random.below(256));
    switch (bytes.empty() ? 1 : random.below(4)) {
      case 0:
        bytes[at] = static_cast<char>(bytes[at] ^ static_cast<char>(1U << random.below(8)));
        break;
      case 1:
        bytes.insert(at, 1 + random.below(4), any);
        break;
      case 2:
        bytes.erase(at, 1 + random.below(8));
        break;
      default:
        bytes[at] = any;
    }
  }
  return bytes;
}

std::string mutate(const Target& target, const std::string& bytes, Random& random) {
  if (target.runs_model == nullptr || random.one_in(16)) return mutate_bytes(bytes, random);
  const std::string mutant = mutate_model(bytes, random.below(std::size_t{1} << 40));
  return mutant.empty() ? bytes : mutant;
}

/// Runs the target; returns whether more is to be made of the bytes. Most of what is made of a
/// model that does not run fails where that does.
bool try_mutant(const Target& target, const std::string& bytes, Random& random) {
  if (target.runs_model != nullptr) return target.runs_model(bytes) || random.one_in(16);
  target.run(bytes);
  return true;
}

std::uint64_t setting(const char* name, std::uint64_t preset) {
  const char* const given = std::getenv(name);
  return given == nullptr ? preset : std::strtoull(given, nullptr, 10);
}

std::vector<Target> all_targets() {
  std::vector<Target> all(byte_targets().begin(), byte_targets().end());
  for (const auto& more : {model_targets(), command_targets()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

class Targets : public ::testing::TestWithParam<Target> {};

TEST_P(Targets, TakeSeedsAndFormerFindings) {
  std::size_t count = 0;
  for (const std::string folder : {"corpus", "findings"}) {
    for (const Input& input : inputs_of(GetParam(), folder)) {
      SCOPED_TRACE(folder + "/" + input.name);
      EXPECT_NO_THROW(GetParam().run(input.bytes));
      ++count;
    }
  }
  EXPECT_GT(count, 0U) << "no seeds";
}

// GRAFT_FUZZ_ROUNDS and GRAFT_FUZZ_SEED make more, and others; GRAFT_FUZZ_LAST names a file that
// holds the input at hand, for who looks into a crash.
TEST_P(Targets, TakeMutants) {
  std::vector<Input> pool = inputs_of(GetParam(), "corpus");
  ASSERT_FALSE(pool.empty());
  Random random(setting("GRAFT_FUZZ_SEED", 1));
  const std::uint64_t rounds = setting("GRAFT_FUZZ_ROUNDS", 100);
  const char* const last = std::getenv("GRAFT_FUZZ_LAST");
  const std::size_t seeds = pool.size();
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const std::string mutant = mutate(GetParam(), random.of(pool).bytes, random);
    if (last != nullptr) std::ofstream(last, std::ios::binary) << mutant;
    bool is_parent = false;
    ASSERT_NO_THROW(is_parent = try_mutant(GetParam(), mutant, random)) << "round " << round;
    if (!is_parent || mutant.size() > 4096) continue;
    if (pool.size() < seeds + 64) {
      pool.push_back({"mutant", mutant});
    } else {
      pool[seeds + random.below(64)].bytes = mutant;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Targets, ::testing::ValuesIn(all_targets()),
                         [](const auto& one) { return std::string(one.param.name); });

// What does not load says nothing of what comes behind.
TEST(Mutants, AreModelsInFourOfFiveCases) {
  const std::vector<Input> seeds = inputs_of(Target{.name = "pipeline"}, "corpus");
  ASSERT_FALSE(seeds.empty());
  Random random(20261123);
  constexpr int kMutants = 300;
  int loaded = 0;
  int ran = 0;
  int trained = 0;
  std::string bytes;
  for (int i = 0; i < kMutants; ++i) {
    if (i % 5 == 0) bytes = random.of(seeds).bytes;  // then mutants of mutants
    bytes = mutate_model(bytes, static_cast<std::uint64_t>(i));
    const Reached reached = follow_pipeline(bytes);
    loaded += reached >= Reached::loaded ? 1 : 0;
    ran += reached >= Reached::ran ? 1 : 0;
    trained += reached == Reached::trained ? 1 : 0;
  }
  EXPECT_GE(loaded, kMutants * 4 / 5);
  EXPECT_GE(ran, kMutants / 4);
  EXPECT_GE(trained, kMutants / 20);
  std::cout << loaded << " of " << kMutants << " loaded, " << ran << " ran, " << trained
            << " trained\n";
}

}  // namespace
}  // namespace graft::fuzz
