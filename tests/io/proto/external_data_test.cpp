#include "io/proto/external_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "io/onnx.h"
#include "tests/data/test_files.h"
#include "tests/io/proto/proto_text.h"

namespace graft::testing {
namespace {

const std::string kFourFloats("\0\0\x80?\0\0\0@\0\0@@\0\0\x80@", 16);  // 1, 2, 3, 4

/// A model of an initializer 'w', f32[2], with these external_data entries.
pb::ModelProto external_model(const std::string& entries) {
  return graph_model(R"(
      output { name: "y" type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } } } } }
      node { op_type: "Relu" input: "w" output: "y" }
      initializer { name: "w" data_type: 1 dims: 2 data_location: EXTERNAL doc_string: "d" )" +
                     entries + "}");
}

std::string entry(const std::string& key, const std::string& value) {
  return "external_data { key: '" + key + "' value: '" + value + "' } ";
}

class ExternalData : public ::testing::Test {
 protected:
  ExternalData() { folder_.write("data.bin", kFourFloats); }

  std::filesystem::path write(const std::string& entries) const {
    return folder_.write("model.onnx", external_model(entries).SerializeAsString());
  }
  void expect_refused(const std::string& entries, ErrorKind kind, std::string_view part) const {
    SCOPED_TRACE(entries);
    expect_error(kind, part, [&] { onnx::load(write(entries)); });
  }

  TempFolder folder_;
};

TEST_F(ExternalData, IsReadFromItsRange) {
  const Model model = onnx::load(write(entry("location", "data.bin") + entry("offset", "4") +
                                       entry("length", "8") + entry("checksum", "unread")));
  EXPECT_TRUE(equal_bits(model.graph().find("w")->initializer(), Tensor::from<float>({2}, {2, 3})));
  const Model whole = onnx::load(write(entry("location", "./data.bin")));
  EXPECT_EQ(whole.graph().find("w")->initializer().values<float>()[0], 1.0F);
}

TEST_F(ExternalData, IsEmbeddedAtExport) {
  const pb::ModelProto proto = exported(onnx::load(write(entry("location", "data.bin"))));
  const pb::TensorProto& tensor = proto.graph().initializer(0);
  EXPECT_EQ(tensor.raw_data(), kFourFloats.substr(0, 8));
  EXPECT_EQ(tensor.external_data_size(), 0);
  EXPECT_FALSE(tensor.has_data_location());
  EXPECT_EQ(tensor.doc_string(), "d");
}

TEST_F(ExternalData, StaysInTheModelsFolder) {
  const TempFolder other;
  const auto secret = other.write("secret", kFourFloats);
  std::filesystem::create_symlink(secret, folder_.path() / "link");
  std::filesystem::create_directory_symlink(other.path(), folder_.path() / "up");
  expect_refused(entry("location", "../" + secret.filename().string()), ErrorKind::io, "leaves");
  expect_refused(entry("location", secret.string()), ErrorKind::io, "must be relative");
  expect_refused(entry("location", "link"), ErrorKind::io, "links are not followed");
  expect_refused(entry("location", "up/secret"), ErrorKind::io, "links are not followed");
  expect_refused(entry("location", "."), ErrorKind::io, "names no file");
  expect_refused(entry("location", "none.bin"), ErrorKind::io, "No such file");
}

TEST_F(ExternalData, RangesAreCheckedAgainstTheFile) {
  const std::string file = entry("location", "data.bin");
  expect_refused(file + entry("offset", "12"), ErrorKind::io, "which has only 16");
  expect_refused(file + entry("offset", "18446744073709551615"), ErrorKind::io, "has only 16");
  expect_refused(file + entry("offset", "18446744073709551616"), ErrorKind::model, "no number");
  expect_refused(file + entry("offset", "-4"), ErrorKind::model, "'offset' is no number");
  expect_refused(file + entry("offset", "4 "), ErrorKind::model, "no number");
  expect_refused(file + entry("length", "16"), ErrorKind::model, "its external_data length is 16");
  expect_refused(entry("offset", "0"), ErrorKind::model, "has no location");
  expect_refused(file + "raw_data: 'abcdefgh'", ErrorKind::model, "nor hold data of its own");
}

TEST_F(ExternalData, ALyingSizeAllocatesNothing) {
  pb::ModelProto proto = external_model(entry("location", "data.bin"));
  proto.mutable_graph()->mutable_initializer(0)->set_dims(0, std::int64_t{1} << 50);
  const auto path = folder_.write("model.onnx", proto.SerializeAsString());
  expect_error(ErrorKind::io, "which has only 16", [&] { onnx::load(path); });
}

TEST_F(ExternalData, NeedsAFolder) {
  expect_error(ErrorKind::io, "given without its folder",
               [] { import(external_model(entry("location", "data.bin"))); });
  const std::string bytes = external_model(entry("location", "data.bin")).SerializeAsString();
  EXPECT_EQ(onnx::parse(bytes, folder_.path()).graph().node_count(), 1U);
}

TEST_F(ExternalData, SaveMovesLargeTensorsOut) {
  Model model = import(graph_model(R"(
      output { name: "y" type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } } } } }
      node { op_type: "Add" input: "a" input: "b" output: "s" }
      node { op_type: "Add" input: "s" input: "c" output: "y" }
      initializer { name: "a" data_type: 1 dims: 2 float_data: 1 float_data: 2 }
      initializer { name: "b" data_type: 1 dims: 1 float_data: 3 }
      initializer { name: "c" data_type: 1 dims: 2 raw_data: "\000\000\000@\000\000\000@" })"));
  const auto path = folder_.path() / "out.onnx";
  onnx::save(model, path, {.external_data = "out.data", .external_threshold_bytes = 8});
  pb::ModelProto proto;
  ASSERT_TRUE(proto.ParseFromString(read_file(path, 10000)));
  EXPECT_EQ(read_file(folder_.path() / "out.data", 1000).size(), 64U + 8U);
  EXPECT_EQ(proto.graph().initializer(0).external_data(1).value(), "0");
  EXPECT_EQ(proto.graph().initializer(2).external_data(1).value(), "64");
  EXPECT_EQ(proto.graph().initializer(1).float_data(0), 3.0F);
  const Model again = onnx::load(path);
  for (const char* const name : {"a", "b", "c"}) {
    EXPECT_TRUE(equal_bits(again.graph().find(name)->initializer(),
                           model.graph().find(name)->initializer()));
  }
}

/// A model of the initializer 'w', f32[2], whose elements lie in a file of their own.
void save_outside(const std::filesystem::path& path, float element) {
  Model model;
  model.set_opset("", 21);
  Value* const w = model.graph().add_initializer("w", Tensor::full(DType::f32, {2}, element));
  model.graph().add_output(w);
  onnx::save(model, path, {.external_data = "m.data", .external_threshold_bytes = 8});
}

std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

using ::testing::ElementsAre;

TEST_F(ExternalData, SaveTakesANewFileAndRemovesTheOlderOne) {
  const TempFolder folder;
  const auto path = folder.path() / "m.onnx";
  save_outside(path, 1);
  EXPECT_THAT(names_in(folder.path()), ElementsAre("m.data", "m.onnx"));
  std::filesystem::permissions(path, std::filesystem::perms(0600));
  save_outside(path, 2);
  EXPECT_THAT(names_in(folder.path()), ElementsAre("m.data.1", "m.onnx"));
  EXPECT_EQ(std::filesystem::status(folder.path() / "m.data.1").permissions(),
            std::filesystem::perms(0600));
  EXPECT_EQ(onnx::load(path).graph().find("w")->initializer().values<float>()[0], 2.0F);
  save_outside(path, 3);
  EXPECT_THAT(names_in(folder.path()), ElementsAre("m.data", "m.onnx"));
}

TEST_F(ExternalData, SaveLeavesNoDataFileIfAllStaysInTheModel) {
  const TempFolder folder;
  const auto path = folder.path() / "m.onnx";
  const Model model = import(graph_model(R"(
      output { name: "w" type { tensor_type { elem_type: 1 shape { dim { dim_value: 1 } } } } }
      initializer { name: "w" data_type: 1 dims: 1 float_data: 3 })"));
  save_outside(path, 1);
  for (int i = 0; i < 2; ++i) {
    onnx::save(model, path, {.external_data = "m.data", .external_threshold_bytes = 8});
    EXPECT_THAT(names_in(folder.path()), ElementsAre("m.onnx"));
  }
  EXPECT_EQ(onnx::load(path).graph().find("w")->initializer().values<float>()[0], 3.0F);
}

/// Somebody took away the older data, or copied the model alone.
TEST_F(ExternalData, SaveKeepsTheDataThatItWroteUnderAnOlderName) {
  const TempFolder folder;
  const auto path = folder.path() / "m.onnx";
  save_outside(path, 1);
  std::filesystem::remove(folder.path() / "m.data");
  save_outside(path, 2);
  EXPECT_EQ(onnx::load(path).graph().find("w")->initializer().values<float>()[0], 2.0F);
  const auto copy = folder.path() / "copy.onnx";
  std::filesystem::copy_file(path, copy);
  save_outside(path, 3);  // in m.data.1, and removes the copy's m.data
  save_outside(copy, 4);
  EXPECT_EQ(onnx::load(path).graph().find("w")->initializer().values<float>()[0], 3.0F);
  EXPECT_EQ(onnx::load(copy).graph().find("w")->initializer().values<float>()[0], 4.0F);
}

TEST_F(ExternalData, DataLieBesideTheFileThatALinkLeadsTo) {
  const TempFolder folder;
  std::filesystem::create_directory(folder.path() / "runs");
  const auto path = folder.path() / "runs" / "m.onnx";
  const auto link = folder.path() / "latest.onnx";
  std::filesystem::create_symlink("runs/m.onnx", link);
  for (const float element : {1.0F, 2.0F}) {
    save_outside(element == 1.0F ? path : link, element);
    for (const auto& file : {path, link}) {
      EXPECT_EQ(onnx::load(file).graph().find("w")->initializer().values<float>()[0], element);
    }
  }
  EXPECT_THAT(names_in(folder.path()), ElementsAre("latest.onnx", "runs"));
}

/// As stores of files do that are named by their content.
TEST_F(ExternalData, DataMayLieBesideALink) {
  const TempFolder folder;
  save_outside(folder.path() / "m.onnx", 5);
  std::filesystem::create_directory(folder.path() / "store");
  std::filesystem::rename(folder.path() / "m.onnx", folder.path() / "store" / "1a2b");
  std::filesystem::create_symlink("store/1a2b", folder.path() / "m.onnx");
  EXPECT_EQ(
      onnx::load(folder.path() / "m.onnx").graph().find("w")->initializer().values<float>()[0],
      5.0F);
}

TEST_F(ExternalData, SaveRemovesNoFileOfOthers) {
  const TempFolder folder;
  const auto path = folder.path() / "m.onnx";
  folder.write("m.data", "another's");
  folder.write("m.data.1", "another's");
  save_outside(path, 1);  // takes m.data.2
  folder.write("m.data.2x", "another's");
  save_outside(path, 2);
  EXPECT_THAT(names_in(folder.path()),
              ElementsAre("m.data", "m.data.1", "m.data.2x", "m.data.3", "m.onnx"));
}

TEST_F(ExternalData, AFailedSaveLeavesModelAndDataAsTheyWere) {
  const TempFolder folder;
  const auto path = folder.path() / "m.onnx";
  save_outside(path, 1);
  Model broken = onnx::load(path);
  broken.graph().add_output(broken.graph().add_node("SgdUpdate", "ai.graft", {}, {"u"})->output());
  expect_error(ErrorKind::model, "ai.graft", [&] {
    onnx::save(broken, path, {.external_data = "m.data", .external_threshold_bytes = 8});
  });
  EXPECT_THAT(names_in(folder.path()), ElementsAre("m.data", "m.onnx"));
  EXPECT_EQ(onnx::load(path).graph().find("w")->initializer().values<float>()[0], 1.0F);
}

TEST_F(ExternalData, SaveRefusesOddFileNames) {
  const Model model = onnx::load(write(entry("location", "data.bin")));
  for (const char* const name : {"../out", "sub/out", "..", "/tmp/out"}) {
    expect_error(ErrorKind::argument, "plain file name",
                 [&] { onnx::save(model, folder_.path() / "out.onnx", {.external_data = name}); });
  }
  expect_error(ErrorKind::argument, "own file name", [&] {
    onnx::save(model, folder_.path() / "out.onnx", {.external_data = "out.onnx"});
  });
}

}  // namespace
}  // namespace graft::testing
