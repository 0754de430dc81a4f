#include "tests/tools/tool_test.h"

#include <gmock/gmock.h>
#include <fstream>
#include <sstream>

namespace graft::testing {

std::string ToolTest::write_mnist(int samples, int size, int classes) const {
  const auto count = static_cast<std::uint32_t>(samples);
  const auto side = static_cast<std::uint32_t>(size);
  std::string pixels;
  std::string labels;
  for (int i = 0; i < samples; ++i) {
    const int label = i % classes;
    for (int y = 0; y < size; ++y) {
      for (int x = 0; x < size; ++x) {
        pixels += static_cast<char>(y == label ? 200 + (i * 7 + x * 3) % 50 : (i + x * y) % 20);
      }
    }
    labels += static_cast<char>(label);
  }
  for (const char* part : {"train", "t10k"}) {
    folder_.write(std::string(part) + "-images-idx3-ubyte", idx(8, {count, side, side}, pixels));
    folder_.write(std::string(part) + "-labels-idx1-ubyte", idx(8, {count}, labels));
  }
  return "mnist:" + folder_.path().string();
}

std::string ToolTest::write_mlp(int size, int classes) const {
  const std::string side = std::to_string(size);
  const Outcome made = run_graft({"new", "mlp", "--input", "1x" + side + "x" + side, "--classes",
                                  std::to_string(classes), "--out", path("mlp.onnx")});
  EXPECT_THAT(made, Succeeds());
  return path("mlp.onnx");
}

std::string ToolTest::read(const std::string& name) const {
  std::ifstream file(folder_.path() / name, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

std::vector<nlohmann::json> json_lines(const Outcome& outcome) {
  std::vector<nlohmann::json> lines;
  std::istringstream text(outcome.out);
  for (std::string line; std::getline(text, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

}  // namespace graft::testing
