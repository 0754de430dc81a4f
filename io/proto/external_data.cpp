#include "io/proto/external_data.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "io/proto/parse.h"

namespace graft::onnx {
namespace {

/// Tensors start at multiples of this in a data file, so that a runtime may map them.
constexpr std::uint64_t kAlignment = 64;

std::uint64_t parse_number(const std::string& digits, std::string_view key, std::string_view who) {
  std::uint64_t value = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value);
  if (error != std::errc() || stop != end) {
    fail(ErrorKind::model, who, ": external_data '", key, "' is no number: '", digits, "'");
  }
  return value;
}

ExternalRange range_of(const pb::TensorProto& tensor, std::string_view who) {
  ExternalRange range;
  for (const pb::StringStringEntryProto& entry : tensor.external_data()) {
    if (entry.key() == "location") {
      range.location = entry.value();
    } else if (entry.key() == "offset") {
      range.offset = parse_number(entry.value(), "offset", who);
    } else if (entry.key() == "length") {
      range.length = parse_number(entry.value(), "length", who);
    }
  }
  if (range.location.empty()) {
    fail(ErrorKind::model, who, " is stored outside the model, but has no location");
  }
  return range;
}

const std::string& checked_name(const std::string& name, const std::filesystem::path& model) {
  const bool plain = std::filesystem::path(name).filename() == name && name != "." && name != "..";
  if (!plain || name.empty()) {
    fail(ErrorKind::argument, "external_data must be a plain file name, found '", name, "'");
  }
  if (model.filename() == name) {
    fail(ErrorKind::argument, "external_data '", name, "' is the model's own file name");
  }
  return name;
}

std::string numbered(const std::string& name, unsigned number) {
  return number == 0 ? name : text(name, ".", number);
}

using Files = std::set<std::string>;

void collect_locations(const pb::TensorProto& tensor, Files& files) {
  for (const pb::StringStringEntryProto& entry : tensor.external_data()) {
    if (entry.key() == "location") files.insert(entry.value());
  }
}

void collect_locations(const pb::SparseTensorProto& tensor, Files& files) {
  collect_locations(tensor.values(), files);
  collect_locations(tensor.indices(), files);
}

void collect_locations(const pb::GraphProto& graph, Files& files);

void collect_locations(const pb::AttributeProto& attribute, Files& files) {
  collect_locations(attribute.t(), files);
  collect_locations(attribute.sparse_tensor(), files);
  collect_locations(attribute.g(), files);
  for (const auto& tensor : attribute.tensors()) collect_locations(tensor, files);
  for (const auto& tensor : attribute.sparse_tensors()) collect_locations(tensor, files);
  for (const auto& graph : attribute.graphs()) collect_locations(graph, files);
}

void collect_locations(const Repeated<pb::NodeProto>& nodes, Files& files) {
  for (const pb::NodeProto& node : nodes) {
    for (const auto& attribute : node.attribute()) collect_locations(attribute, files);
  }
}

void collect_locations(const pb::GraphProto& graph, Files& files) {
  for (const auto& tensor : graph.initializer()) collect_locations(tensor, files);
  for (const auto& tensor : graph.sparse_initializer()) collect_locations(tensor, files);
  collect_locations(graph.node(), files);
}

void collect_locations(const pb::ModelProto& model, Files& files) {
  collect_locations(model.graph(), files);
  for (const pb::FunctionProto& function : model.functions()) {
    collect_locations(function.node(), files);
    for (const auto& attribute : function.attribute_proto()) collect_locations(attribute, files);
  }
  for (const pb::TrainingInfoProto& info : model.training_info()) {
    collect_locations(info.initialization(), files);
    collect_locations(info.algorithm(), files);
  }
}

void set_entry(pb::TensorProto& tensor, const char* key, std::string value) {
  pb::StringStringEntryProto* const entry = tensor.add_external_data();
  entry->set_key(key);
  entry->set_value(std::move(value));
}

File open_for(std::string_view who, const std::filesystem::path& folder,
              const std::string& location) {
  try {
    return File::open_beneath(folder, location);
  } catch (const Error& error) {
    fail(error.kind(), who, ": ", error.what());
  }
}

}  // namespace

File ExternalReader::open(const ExternalRange& range, std::size_t bytes,
                          std::string_view who) const {
  if (folder_.empty()) {
    fail(ErrorKind::io, who, " lies in data file '", range.location,
         "', but the model was given without its folder");
  }
  if (range.length && *range.length != bytes) {
    fail(ErrorKind::model, who, " needs ", bytes, " bytes, but its external_data length is ",
         *range.length);
  }
  File file = open_for(who, folder_, range.location);
  if (range.offset > file.size() || bytes > file.size() - range.offset) {
    fail(ErrorKind::io, who, " needs ", bytes, " bytes from byte ", range.offset, " of '",
         file.name(), "', which has only ", file.size());
  }
  return file;
}

void ExternalReader::check(const pb::TensorProto& tensor, std::size_t bytes,
                           std::string_view who) const {
  open(range_of(tensor, who), bytes, who);
}

void ExternalReader::read(const pb::TensorProto& tensor, std::size_t bytes, std::string_view who,
                          void* target) const {
  const ExternalRange range = range_of(tensor, who);
  open(range, bytes, who).read(range.offset, target, bytes);
}

std::set<std::string> data_files_of(const std::filesystem::path& path) {
  constexpr std::uint64_t kLargest = std::uint64_t{1} << 28;  // its data lie elsewhere
  std::set<std::string> files;
  try {
    pb::ModelProto model;
    parse_message(File::open(path, kLargest), "model", model);
    collect_locations(model, files);
  } catch (const Error&) {
    files.clear();
  }
  return files;
}

std::filesystem::path folder_of_data(const std::filesystem::path& path,
                                     const pb::ModelProto& model) {
  const std::filesystem::path target = target_of(path);
  if (target == path) return folder_of(path);
  Files files;
  collect_locations(model, files);
  std::error_code ignored;
  const bool is_beside_link = std::ranges::all_of(files, [&](const std::string& file) {
    return std::filesystem::exists(folder_of(path) / file, ignored);
  });
  return folder_of(is_beside_link ? path : target);
}

ExternalWriter::ExternalWriter(std::filesystem::path model, const std::string& name,
                               std::size_t threshold_bytes)
    : model_(std::move(model)),
      name_(checked_name(name, model_)),
      threshold_bytes_(threshold_bytes),
      file_([&](unsigned i) { return model_.parent_path() / numbered(name_, i); },
            model_.parent_path() / name_) {
  std::error_code ignored;
  const std::filesystem::file_status older = std::filesystem::status(model_, ignored);
  if (std::filesystem::exists(older)) file_.set_mode(static_cast<unsigned>(older.permissions()));
}

void ExternalWriter::add(const void* bytes, std::size_t count, pb::TensorProto& tensor) {
  is_used_ = true;
  static constexpr std::array<char, kAlignment> kZeros{};
  file_.write(kZeros.data(), (kAlignment - file_.size() % kAlignment) % kAlignment);
  tensor.set_data_location(pb::TensorProto::EXTERNAL);
  set_entry(tensor, "location", file_.path().filename().string());
  set_entry(tensor, "offset", std::to_string(file_.size()));
  set_entry(tensor, "length", std::to_string(count));
  file_.write(bytes, count);
}

bool ExternalWriter::is_own(const std::string& file) const {
  if (!file.starts_with(name_)) return false;
  const std::string_view rest = std::string_view(file).substr(name_.size());
  const bool is_numbered = rest.size() > 1 && rest.front() == '.' &&
                           rest.find_first_not_of("0123456789", 1) == std::string_view::npos;
  return rest.empty() || is_numbered;
}

void ExternalWriter::commit(AtomicFile& file) {
  // Behind the rename nothing is allocated, so that no lack of memory makes it look undone.
  std::vector<std::filesystem::path> older;
  for (const std::string& name : data_files_of(model_)) {
    std::filesystem::path data = model_.parent_path() / name;
    // The older model may name a file that was not there, and so has been made now.
    const bool is_new = is_used_ && data == file_.path();
    if (is_own(name) && !is_new) older.push_back(std::move(data));
  }
  if (is_used_) {
    file_.finish();
    file_.sync_name();
  }
  file.replace();
  if (is_used_) file_.keep();
  file.sync_name();
  std::error_code ignored;  // a file too many does no harm
  for (const std::filesystem::path& data : older) std::filesystem::remove(data, ignored);
}

}  // namespace graft::onnx
