#include "io/proto/format.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <exception>

#include "core/base/error.h"

namespace graft::onnx {
namespace {

/// Lets protobuf write to a file. Exceptions do not pass through protobuf's code.
class FileStream : public google::protobuf::io::CopyingOutputStream {
 public:
  explicit FileStream(AtomicFile& file) : file_(file) {}

  bool Write(const void* bytes, int count) override {
    try {
      file_.write(bytes, static_cast<std::size_t>(count));
    } catch (...) {
      error_ = std::current_exception();
    }
    return error_ == nullptr;
  }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  AtomicFile& file_;
  std::exception_ptr error_;
};

}  // namespace

bool read_bytes(std::string_view bytes, int depth, AnyMessage& message) {
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const std::uint8_t*>(bytes.data()),
                                                static_cast<int>(bytes.size()));
  stream.SetRecursionLimit(depth);
  return message.ParseFromCodedStream(&stream) && stream.ConsumedEntireMessage();
}

void write_bytes(const AnyMessage& message, AtomicFile& file) {
  check_size(message);
  FileStream sink(file);
  bool written = false;
  {
    google::protobuf::io::CopyingOutputStreamAdaptor stream(&sink);
    written = message.SerializeToZeroCopyStream(&stream) && stream.Flush();
  }
  sink.rethrow();
  if (!written) fail(ErrorKind::io, "the message could not be written");
}

}  // namespace graft::onnx
