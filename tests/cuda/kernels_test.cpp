// Every CUDA kernel on every sample of its row, against the CPU's: in three element types, two
// orders of threads, and with the output in the place of each input that the row allows.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "core/device/cuda/emulated/emulator.h"
#include "core/ops/registry.h"
#include "tests/cuda/on_card.h"
#include "tests/sweep/sample_graph.h"

namespace graft {
namespace {

using test::card;

/// Bytes on a device, freed at the end.
class Block {
 public:
  Block(Device& device, std::size_t bytes) : device_(&device), data_(device.allocate(bytes)) {}
  ~Block() { device_->deallocate(data_); }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  void* data() const { return data_; }

 private:
  Device* device_;
  void* data_;
};
using BlockPtr = std::shared_ptr<Block>;

std::size_t bytes_of_value(const Value& value) {
  return bytes_of(value.dtype(), value.known_shape().size());
}

/// The outputs of one call. `in_place`: the pair of output and input that share memory, if any.
std::vector<std::vector<std::byte>> run(const test::SampleGraph& sample, Device& device,
                                        const PreparedKernel& kernel,
                                        const Alias* in_place = nullptr) {
  std::vector<BlockPtr> blocks;
  std::vector<const void*> inputs;
  for (const Tensor& tensor : sample.node_inputs) {
    if (!tensor.defined()) {
      inputs.push_back(nullptr);
      continue;
    }
    const std::size_t bytes = bytes_of(tensor.dtype(), tensor.size());
    blocks.push_back(std::make_shared<Block>(device, bytes));
    device.copy_from_host(blocks.back()->data(), tensor.data(), bytes);
    inputs.push_back(blocks.back()->data());
  }
  std::vector<void*> outputs;
  for (int i = 0; i < sample.node->output_count(); ++i) {
    const Value* const output = sample.node->output(i);
    if (output == nullptr) {
      outputs.push_back(nullptr);
    } else if (in_place != nullptr && in_place->output == i) {
      outputs.push_back(const_cast<void*>(inputs[static_cast<std::size_t>(in_place->input)]));
    } else {
      blocks.push_back(std::make_shared<Block>(device, bytes_of_value(*output)));
      outputs.push_back(blocks.back()->data());
    }
  }
  const Block workspace(device, kernel.workspace_bytes);
  const RunState state;
  const Block run_state(device, sizeof state);
  device.copy_from_host(run_state.data(), &state, sizeof state);
  kernel.run({inputs, outputs, workspace.data(), static_cast<const RunState*>(run_state.data())});
  device.synchronize();
  std::vector<std::vector<std::byte>> results;
  for (int i = 0; i < sample.node->output_count(); ++i) {
    const Value* const output = sample.node->output(i);
    results.emplace_back(output == nullptr ? 0 : bytes_of_value(*output));
    if (results.back().empty()) continue;
    device.copy_to_host(results.back().data(), outputs[static_cast<std::size_t>(i)],
                        results.back().size());
  }
  return results;
}

std::vector<double> numbers(const Value& value, const std::vector<std::byte>& bytes) {
  std::vector<double> result(static_cast<std::size_t>(value.known_shape().size()));
  visit_dtype(AllTypes{}, value.dtype(), [&]<class T>() {
    for (std::size_t i = 0; i < result.size(); ++i) {
      T one;
      std::memcpy(static_cast<void*>(&one), bytes.data() + i * sizeof(T), sizeof(T));
      if constexpr (std::is_arithmetic_v<T>) {
        result[i] = static_cast<double>(one);
      } else {
        result[i] = static_cast<float>(one);
      }
    }
  });
  return result;
}

void expect_near(const Value& value, const std::vector<std::byte>& found,
                 const std::vector<std::byte>& wanted, double relative, double absolute,
                 const std::string& where) {
  const std::vector<double> a = numbers(value, found);
  const std::vector<double> b = numbers(value, wanted);
  for (std::size_t i = 0; i < a.size(); ++i) {
    const bool is_same = a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]));
    if (is_same || std::abs(a[i] - b[i]) <= absolute + relative * std::abs(b[i])) continue;
    ADD_FAILURE() << where << ": element " << i << " is " << a[i] << ", on the CPU " << b[i];
    return;
  }
}

/// Whether `input` of a call may have the memory of an output of the same size.
bool is_possible(const test::SampleGraph& sample, const Alias& alias) {
  const auto input = static_cast<std::size_t>(alias.input);
  if (alias.kind != AliasKind::in_place || alias.output >= sample.node->output_count() ||
      input >= sample.node_inputs.size() || !sample.node_inputs[input].defined()) {
    return false;
  }
  const Value* const output = sample.node->output(alias.output);
  return output != nullptr && output->dtype() == sample.node_inputs[input].dtype() &&
         output->known_shape() == sample.node_inputs[input].shape();
}

/// One kernel of the card against the CPU's, in another order of threads, and in place.
void check(const OpDef& def, const Sample& one, const test::SampleGraph& sample, DType dtype,
           const PreparedKernel& kernel) {
  const std::string where = std::string(def.name) + "_" + one.name + "_" +
                            std::string(name(dtype)) + " by " + std::string(kernel.name);
  const auto wanted = run(sample, cpu(), prepare_kernel(*sample.node, cpu()));
  const auto found = run(sample, card(), kernel);
  const bool is_bf16 = dtype == DType::bf16;
  for (int i = 0; i < sample.node->output_count(); ++i) {
    const Value* const output = sample.node->output(i);
    if (output == nullptr) continue;
    const auto at = static_cast<std::size_t>(i);
    expect_near(*output, found[at], wanted[at], is_bf16 ? 1.0 / 64 : 4 * one.relative,
                is_bf16 ? 1.0 / 64 : 4 * one.absolute, where);
  }
  emulated::set_thread_order(7);
  EXPECT_EQ(run(sample, card(), kernel), found) << where << ": by another order of threads";
  emulated::set_thread_order(0);
  for (const Alias& alias : def.aliases) {
    if (!is_possible(sample, alias)) continue;
    EXPECT_EQ(run(sample, card(), kernel, &alias), found)
        << where << ": output " << alias.output << " in the place of input " << alias.input;
  }
}

/// Whether the sample is small enough for this build: sanitizers make the emulated card so much
/// slower that the large ones, which are for grids of many blocks, would take half an hour.
bool is_affordable(const test::SampleGraph& sample) {
#if defined(__SANITIZE_ADDRESS__)
  constexpr std::int64_t kMost = 2000;
#else
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
#endif
  std::int64_t size = 0;
  for (const Tensor& input : sample.node_inputs) size += input.defined() ? input.size() : 0;
  return size <= kMost;
}

/// How many kernels take it.
int check(const OpDef& def, const Sample& one, DType dtype) {
  const test::SampleGraph sample = test::make_sample_graph(def, one, dtype, dtype);
  if (!is_affordable(sample)) return 0;
  const std::vector<PreparedKernel> kernels = prepare_all_kernels(*sample.node, card());
  for (const PreparedKernel& kernel : kernels) check(def, one, sample, dtype, kernel);
  return static_cast<int>(kernels.size());
}

bool has_cuda_kernel(const OpDef& def) {
  return !KernelRegistry::instance().find(DeviceKind::cuda, def.name, def.domain).empty();
}

/// The rows that have a kernel, in the order of their names.
std::vector<const OpDef*> rows() {
  std::vector<const OpDef*> found;
  for (const OpDef& def : OpRegistry::instance().all()) {
    if (has_cuda_kernel(def)) found.push_back(&def);
  }
  std::ranges::sort(found, {}, [](const OpDef* def) { return def->name; });
  return found;
}

class CudaAgrees : public ::testing::TestWithParam<const OpDef*> {};

TEST_P(CudaAgrees, WithTheCpuOnEverySample) {
  int calls = 0;
  for (const Sample& sample : GetParam()->samples()) {
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16}) {
      calls += check(*GetParam(), sample, dtype);
    }
  }
  EXPECT_GT(calls, 0) << "has a CUDA kernel that takes no sample";
}

INSTANTIATE_TEST_SUITE_P(Rows, CudaAgrees, ::testing::ValuesIn(rows()),
                         [](const auto& row) { return std::string(row.param->name); });

TEST(CudaKernels, AreThereForAtLeast150Rows) {
  EXPECT_GE(rows().size(), 150U);
}

}  // namespace
}  // namespace graft
