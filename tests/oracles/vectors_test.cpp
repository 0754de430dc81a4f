// Every internal op on what PyTorch or NumPy got, tests/oracles/vectors, and ordinary ops at
// awkward points, tests/oracles/awkward; both are written by the Python beside this file. The sweep
// holds kernels against one another; this says that they are right.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "core/ops/builder.h"
#include "core/ops/evaluate.h"
#include "core/ops/registry.h"

namespace graft::test {
namespace {

using nlohmann::json;

std::filesystem::path folder_of(std::string_view domain) {
  return std::filesystem::path(GRAFT_SOURCE_DIR) / "tests" / "oracles" /
         (domain == kInternalDomain ? "vectors" : "awkward");
}

std::filesystem::path file_of(const OpDef& def) {
  return folder_of(def.domain) / (std::string(def.name) + ".json");
}

/// Numbers; "inf", "-inf" and "nan", which JSON does not have, are texts.
std::vector<double> numbers(const json& list) {
  std::vector<double> values;
  for (const json& one : list) {
    values.push_back(one.is_string() ? std::stod(one.get<std::string>()) : one.get<double>());
  }
  return values;
}

DType dtype_of(const json& tensor) {
  static const std::map<std::string, DType> kTypes{{"f32", DType::f32},
                                                   {"i64", DType::i64},
                                                   {"i32", DType::i32},
                                                   {"u8", DType::u8},
                                                   {"bool", DType::boolean}};
  return kTypes.at(tensor.at("dtype").get<std::string>());
}

/// f32 in the file is `float_type`; the numbers stay those of f32.
Tensor read_tensor(const json& from, DType float_type) {
  const Shape shape(from.at("shape").get<std::vector<std::int64_t>>());
  const DType dtype = dtype_of(from);
  const Tensor tensor = Tensor::from(shape, numbers(from.at("values")));
  return dtype == DType::f32 ? tensor.cast(DType::f32).cast(float_type) : tensor.cast(dtype);
}

Layout layout_of(const json& tensor) {
  return tensor.contains("layout") ? Layout::channels_last : Layout::row_major;
}

/// {"inputs": [name...], "nodes": [[op, [input...], output]...], "outputs": [name...]}
std::shared_ptr<Graph> read_body(const json& from) {
  auto body = std::make_shared<Graph>("body");
  for (const std::string name : from.at("inputs")) body->add_input(name, {});
  for (const json& node : from.at("nodes")) {
    std::vector<Value*> inputs;
    for (const std::string name : node.at(1)) inputs.push_back(body->find(name));
    body->add_node(node.at(0).get<std::string>(), "", inputs, {node.at(2).get<std::string>()}, {});
  }
  for (const std::string name : from.at("outputs")) body->add_output(body->find(name));
  return body;
}

Attributes read_attributes(const json& from) {
  Attributes attributes;
  for (const auto& [name, value] : from.items()) {
    if (value.is_object()) {
      attributes.set({name, read_body(value)});
    } else if (value.is_array()) {
      attributes.set({name, value.get<std::vector<std::int64_t>>()});
    } else if (value.is_string()) {
      attributes.set({name, value.get<std::string>()});
    } else if (value.is_number_integer()) {
      attributes.set({name, value.get<std::int64_t>()});
    } else {
      attributes.set({name, value.get<float>()});
    }
  }
  return attributes;
}

/// One node with its data.
struct Call {
  Call(const OpDef& def, const json& from, DType float_type) {
    std::vector<Value*> values;
    for (const json& input : from.at("inputs")) values.push_back(add_input(input, float_type));
    Builder builder(graph);
    node = builder.node(def.name, def.domain, values, static_cast<int>(from.at("outputs").size()),
                        read_attributes(from.at("attributes")));
    for (int i = 0; i < node->output_count(); ++i) {
      node->output(i)->layout = layout_of(from.at("outputs").at(static_cast<std::size_t>(i)));
    }
  }

  Graph graph{"vector"};
  Node* node = nullptr;
  std::vector<Tensor> inputs;

 private:
  Value* add_input(const json& input, DType float_type) {
    if (input.is_null()) {
      inputs.emplace_back();
      return nullptr;
    }
    const std::string name = "x" + std::to_string(inputs.size());
    inputs.push_back(read_tensor(input, float_type));
    if (input.contains("constant")) return graph.add_initializer(name, inputs.back());
    const ValueType type{inputs.back().dtype(), SymShape(inputs.back().shape())};
    Value* const value = graph.add_input(name, type);
    value->layout = layout_of(input);
    return value;
  }
};

void expect_close(const Tensor& found, const json& wanted, const json& one,
                  const std::string& what) {
  ASSERT_EQ(found.shape(), Shape(wanted.at("shape").get<std::vector<std::int64_t>>())) << what;
  const double relative = one.value("relative", 2e-6);
  const double absolute = one.value("absolute", 2e-6);
  const std::vector<double> a = to_double(found);
  const std::vector<double> b = numbers(wanted.at("values"));
  ASSERT_EQ(a.size(), b.size()) << what;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) continue;  // infinities too
    ASSERT_LE(std::abs(a[i] - b[i]), absolute + relative * std::abs(b[i]))
        << what << " element " << i << ": found " << a[i] << ", wanted " << b[i];
  }
}

void expect_outputs(const std::vector<Tensor>& found, const json& one, const std::string& what) {
  const json& wanted = one.at("outputs");
  ASSERT_EQ(found.size(), wanted.size()) << what;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (wanted[i].is_null()) continue;
    expect_close(found[i], wanted[i], one, what + " output " + std::to_string(i));
  }
}

std::vector<const OpDef*> internal_ops() {
  std::vector<const OpDef*> ops;
  for (const OpDef& def : OpRegistry::instance().all()) {
    if (def.domain == kInternalDomain) ops.push_back(&def);
  }
  return ops;
}

class Vectors : public testing::TestWithParam<const OpDef*> {};

TEST_P(Vectors, EveryKernelAgrees) {
  const OpDef& def = *GetParam();
  const bool is_view = !def.aliases.empty() && def.aliases.front().kind == AliasKind::view;
  std::ifstream file(file_of(def));
  ASSERT_TRUE(file) << file_of(def) << " is missing: tests/oracles/README.md says how to "
                    << "write what a new op must give";
  for (const json& one : json::parse(file)) {
    SCOPED_TRACE(one.at("name").get<std::string>());
    for (const DType dtype : {DType::f32, DType::f64}) {
      const Call call(def, one, dtype);
      const auto kernels = prepare_all_kernels(*call.node, cpu());
      EXPECT_TRUE(is_view || !kernels.empty()) << "no kernel for " << dtype;
      if (is_view) expect_outputs(evaluate(*call.node, call.inputs), one, "view");
      for (const PreparedKernel& kernel : kernels) {
        expect_outputs(evaluate(kernel, *call.node, call.inputs), one,
                       text(dtype, " kernel '", kernel.name, "'"));
      }
    }
  }
}

/// The ops of the files of a folder.
std::vector<const OpDef*> ops_with_files(std::string_view domain) {
  std::vector<const OpDef*> ops;
  for (const auto& entry : std::filesystem::directory_iterator(folder_of(domain))) {
    const std::string op = entry.path().stem().string();
    const OpDef* const def = OpRegistry::instance().find(op, domain);
    EXPECT_NE(def, nullptr) << entry.path();
    if (def != nullptr) ops.push_back(def);
  }
  std::ranges::sort(ops, {}, &OpDef::name);
  return ops;
}

TEST(Vectors, EveryFileIsOfAnOp) {
  ops_with_files(kInternalDomain);
  EXPECT_GE(ops_with_files("").size(), 50U);
}

INSTANTIATE_TEST_SUITE_P(Internal, Vectors, testing::ValuesIn(internal_ops()),
                         [](const auto& one) { return std::string(one.param->name); });
INSTANTIATE_TEST_SUITE_P(Awkward, Vectors, testing::ValuesIn(ops_with_files("")),
                         [](const auto& one) { return std::string(one.param->name); });

}  // namespace
}  // namespace graft::test
