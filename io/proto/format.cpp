#include "io/proto/format.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <cstdint>
#include <exception>

#include "core/base/error.h"

namespace graft::onnx {
namespace {

/// What went wrong in a stream: exceptions do not pass through protobuf's code.
class KeptError {
 public:
  /// Whether `work` threw nothing.
  template <class Work>
  bool keep(const Work& work) {
    try {
      work();
    } catch (...) {
      error_ = std::current_exception();
    }
    return error_ == nullptr;
  }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::exception_ptr error_;
};

/// Lets protobuf write to a file.
class FileSink : public google::protobuf::io::CopyingOutputStream {
 public:
  explicit FileSink(AtomicFile& file) : file_(file) {}

  bool Write(const void* bytes, int count) override {
    return error.keep([&] { file_.write(bytes, static_cast<std::size_t>(count)); });
  }

  KeptError error;

 private:
  AtomicFile& file_;
};

/// Lets protobuf read a file.
class FileSource : public google::protobuf::io::CopyingInputStream {
 public:
  explicit FileSource(const File& file) : file_(file) {}

  /// 0 at the end.
  int Read(void* buffer, int most) override {
    const auto count =
        std::min<std::uint64_t>(static_cast<std::uint64_t>(most), file_.size() - at_);
    if (!error.keep([&] { file_.read(at_, buffer, count); })) return -1;
    at_ += count;
    return static_cast<int>(count);
  }

  KeptError error;

 private:
  const File& file_;
  std::uint64_t at_ = 0;
};

bool parse(google::protobuf::io::CodedInputStream& stream, int depth, AnyMessage& message) {
  stream.SetRecursionLimit(depth);
  return message.ParseFromCodedStream(&stream) && stream.ConsumedEntireMessage();
}

}  // namespace

bool read_bytes(std::string_view bytes, int depth, AnyMessage& message) {
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const std::uint8_t*>(bytes.data()),
                                                static_cast<int>(bytes.size()));
  return parse(stream, depth, message);
}

bool read_bytes(const File& file, int depth, AnyMessage& message) {
  constexpr int kPiece = 1 << 16;  // stays in a near cache
  FileSource source(file);
  bool is_read = false;
  {
    google::protobuf::io::CopyingInputStreamAdaptor pieces(&source, kPiece);
    google::protobuf::io::CodedInputStream stream(&pieces);
    is_read = parse(stream, depth, message);
  }
  source.error.rethrow();
  return is_read;
}

void write_bytes(const AnyMessage& message, AtomicFile& file) {
  check_size(message);
  FileSink sink(file);
  bool written = false;
  {
    google::protobuf::io::CopyingOutputStreamAdaptor stream(&sink);
    written = message.SerializeToZeroCopyStream(&stream) && stream.Flush();
  }
  sink.error.rethrow();
  if (!written) fail(ErrorKind::io, "the message could not be written");
}

}  // namespace graft::onnx
