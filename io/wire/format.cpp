#include "io/proto/format.h"

#include <string>

namespace graft::onnx {

bool read_bytes(std::string_view bytes, int depth, AnyMessage& message) {
  return message.parse(bytes, depth);
}

bool read_bytes(const File& file, int depth, AnyMessage& message) {
  return message.parse(file.read_all(), depth);
}

void write_bytes(const AnyMessage& message, AtomicFile& file) {
  constexpr std::size_t kBuffer = 65536;
  check_size(message);
  std::string buffer;
  message.write([&](std::string_view piece) {
    if (buffer.size() + piece.size() > kBuffer) {
      file.write(buffer);
      buffer.clear();
    }
    if (piece.size() > kBuffer) {
      file.write(piece);
    } else {
      buffer += piece;
    }
  });
  file.write(buffer);
}

}  // namespace graft::onnx
