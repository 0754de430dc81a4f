#include "io/proto/parse.h"

#include <algorithm>
#include <optional>

#include "io/proto/format.h"

namespace graft::onnx {
namespace {

/// Graphs nest by three messages a level; the validator sets the limit that users see.
constexpr int kMaxMessageDepth = 400;

/// Steps over the fields of one message without looking into them.
class FieldScanner {
 public:
  explicit FieldScanner(std::string_view bytes) : bytes_(bytes) {}

  /// Why the bytes are no message; empty if at this level they are one.
  std::string problem() {
    while (at_ < bytes_.size()) {
      const std::size_t start = at_;
      const std::optional<std::uint64_t> tag = varint();
      if (!tag) return ends_inside(start);
      if (std::string found = skip(start, *tag); !found.empty()) return found;
    }
    return {};
  }

 private:
  std::string skip(std::size_t start, std::uint64_t tag) {
    const std::uint64_t field = tag >> 3;
    if (field == 0 || field > 0x1fffffff) return stray(start);
    std::uint64_t length = 0;
    switch (tag & 7) {
      case 0:
        if (!varint()) return ends_inside(start);
        break;
      case 1:
        length = 8;
        break;
      case 2: {
        const std::optional<std::uint64_t> declared = varint();
        if (!declared) return ends_inside(start);
        length = *declared;
        break;
      }
      case 5:
        length = 4;
        break;
      default:
        return stray(start);
    }
    if (length > bytes_.size() - at_) {
      return text("truncated: field ", field, " at byte ", start, " needs ", length,
                  " bytes, only ", bytes_.size() - at_, " are there");
    }
    at_ += length;
    return {};
  }

  std::optional<std::uint64_t> varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; at_ < bytes_.size() && shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes_[at_++]);
      value |= static_cast<std::uint64_t>(byte & 0x7fU) << shift;
      if (byte < 0x80) return value;
    }
    return std::nullopt;
  }

  static std::string ends_inside(std::size_t start) {
    return text("truncated: the field at byte ", start, " does not end");
  }
  static std::string stray(std::size_t start) {
    return text("malformed at byte ", start,
                ", where no field starts: stray bytes after the message, or another kind of file");
  }

  std::string_view bytes_;
  std::size_t at_ = 0;
};

/// What a git lfs pointer starts with.
constexpr std::string_view kLfsPointer = "version https://git-lfs";

/// Refuses what need not be parsed. `start`: of the bytes, as many as kLfsPointer has, or all.
void check_start(std::uint64_t size, std::string_view start, std::string_view what) {
  if (size == 0) fail(ErrorKind::model, "the ", what, " is empty: 0 bytes");
  if (size > kMaxMessageBytes) {
    fail(ErrorKind::model, "the ", what, " has ", size, " bytes; protobuf ends at 2 GiB");
  }
  if (start.starts_with(kLfsPointer)) {
    fail(ErrorKind::model, "the ", what, " is a git lfs pointer; fetch the file with git lfs pull");
  }
}

[[noreturn]] void refuse(std::string_view bytes, std::string_view what) {
  const std::string problem = FieldScanner(bytes).problem();
  fail(ErrorKind::model, "the ", what, " is ",
       problem.empty() ? "malformed within, or its graphs nest too deeply" : problem);
}

}  // namespace

void check_size(const AnyMessage& message) {
  const std::size_t bytes = message.ByteSizeLong();
  if (bytes > kMaxMessageBytes) {
    fail(ErrorKind::model, "the message takes ", bytes,
         " bytes, protobuf ends at 2 GiB; save the model with external_data");
  }
}

void parse_message(std::string_view bytes, std::string_view what, AnyMessage& message) {
  check_start(bytes.size(), bytes, what);
  if (!read_bytes(bytes, kMaxMessageDepth, message)) refuse(bytes, what);
}

void parse_message(const File& file, std::string_view what, AnyMessage& message) {
  std::string start(std::min<std::uint64_t>(file.size(), kLfsPointer.size()), '\0');
  file.read(0, start.data(), start.size());
  check_start(file.size(), start, what);
  if (!read_bytes(file, kMaxMessageDepth, message)) refuse(file.read_all(), what);
}

}  // namespace graft::onnx
