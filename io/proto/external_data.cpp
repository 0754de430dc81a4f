#include "io/proto/external_data.h"

#include <array>
#include <charconv>

#include "core/base/error.h"

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

const std::string& checked_name(const std::string& name) {
  const bool plain = std::filesystem::path(name).filename() == name && name != "." && name != "..";
  if (!plain || name.empty()) {
    fail(ErrorKind::argument, "external_data must be a plain file name, found '", name, "'");
  }
  return name;
}

void set_entry(pb::TensorProto& tensor, const char* key, std::string value) {
  pb::StringStringEntryProto* const entry = tensor.add_external_data();
  entry->set_key(key);
  entry->set_value(std::move(value));
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
  File file = File::open_beneath(folder_, range.location);
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

ExternalWriter::ExternalWriter(const std::filesystem::path& model, const std::string& name,
                               std::size_t threshold_bytes)
    : name_(checked_name(name)),
      threshold_bytes_(threshold_bytes),
      file_(model.parent_path() / name) {
  if (model.filename() == name) {
    fail(ErrorKind::argument, "external_data '", name, "' is the model's own file name");
  }
}

void ExternalWriter::add(const void* bytes, std::size_t count, pb::TensorProto& tensor) {
  static constexpr std::array<char, kAlignment> kZeros{};
  file_.write(kZeros.data(), (kAlignment - file_.size() % kAlignment) % kAlignment);
  tensor.set_data_location(pb::TensorProto::EXTERNAL);
  set_entry(tensor, "location", name_);
  set_entry(tensor, "offset", std::to_string(file_.size()));
  set_entry(tensor, "length", std::to_string(count));
  file_.write(bytes, count);
}

}  // namespace graft::onnx
