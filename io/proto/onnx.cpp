#include "io/onnx.h"

#include <google/protobuf/arena.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <exception>
#include <new>
#include <optional>

#include "core/base/time_limit.h"
#include "core/graph/verify.h"
#include "io/exporters/exporters.h"
#include "io/file.h"
#include "io/proto/checker.h"
#include "io/proto/data_proto.h"
#include "io/proto/parse.h"
#include "io/proto/reader.h"
#include "io/proto/standard_functions.h"
#include "io/proto/tensor_proto.h"
#include "io/proto/validator.h"
#include "io/proto/value_info.h"
#include "io/proto/writer.h"

namespace graft::onnx {
namespace {

/// Runs `work` on a file: errors name it, and a failed allocation becomes an Error.
template <class Work>
auto on_file(std::string_view action, const std::filesystem::path& path, Work&& work) {
  try {
    return work();
  } catch (const Error& error) {
    fail(error.kind(), "cannot ", action, " '", path.string(), "': ", error.what());
  } catch (const std::bad_alloc&) {
    fail(ErrorKind::memory, "cannot ", action, " '", path.string(), "': out of memory");
  }
}

Model build(pb::ModelProto& proto, const std::filesystem::path& folder) {
  const ExternalReader external(folder);
  validate(proto, external);
  run_checker(proto, folder);
  Model model = take_model(proto, external);
  attach_standard_functions(model);
  verify(model);
  give_roles(model);
  return model;
}

/// A relative file name without a folder lies in the current one.
std::filesystem::path folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : ".";
}

std::uint64_t size_limit(const LoadOptions& options) {
  return std::min(options.max_bytes, kMaxMessageBytes);
}

void check_size(const google::protobuf::Message& message) {
  const std::size_t bytes = message.ByteSizeLong();
  if (bytes > kMaxMessageBytes) {
    fail(ErrorKind::model, "the message takes ", bytes,
         " bytes, protobuf ends at 2 GiB; save the model with external_data");
  }
}

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

void write_message(const google::protobuf::Message& message, AtomicFile& file) {
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

}  // namespace

Model load(const std::filesystem::path& path, const LoadOptions& options) {
  const TimeLimit time_limit;
  return on_file("load", path, [&] {
    google::protobuf::Arena arena;
    auto* const proto = google::protobuf::Arena::CreateMessage<pb::ModelProto>(&arena);
    parse_message(read_file(path, size_limit(options)), "model", *proto);
    return build(*proto, folder_of(path));
  });
}

Model parse(std::string_view bytes, const std::filesystem::path& folder,
            const LoadOptions& options) {
  const TimeLimit time_limit;
  if (bytes.size() > options.max_bytes) {
    fail(ErrorKind::model, "the model has ", bytes.size(), " bytes, more than the limit of ",
         options.max_bytes);
  }
  try {
    google::protobuf::Arena arena;
    auto* const proto = google::protobuf::Arena::CreateMessage<pb::ModelProto>(&arena);
    parse_message(bytes, "model", *proto);
    return build(*proto, folder);
  } catch (const std::bad_alloc&) {
    fail(ErrorKind::memory, "cannot read a model of ", bytes.size(), " bytes: out of memory");
  }
}

void save(const Model& model, const std::filesystem::path& path, const SaveOptions& options) {
  on_file("save", path, [&] {
    std::optional<ExternalWriter> external;
    if (!options.external_data.empty()) {
      external.emplace(path, options.external_data, options.external_threshold_bytes);
    }
    AtomicFile file(path);
    google::protobuf::Arena arena;
    auto* const proto = google::protobuf::Arena::CreateMessage<pb::ModelProto>(&arena);
    put_model(model, *proto, external ? &*external : nullptr);
    write_message(*proto, file);
    if (external) return external->commit(file);
    file.commit();
  });
}

std::string serialize(const Model& model) {
  pb::ModelProto proto;
  put_model(model, proto, nullptr);
  check_size(proto);
  return proto.SerializeAsString();
}

NamedTensor load_tensor(const std::filesystem::path& path) {
  return on_file("load", path, [&] {
    pb::TensorProto proto;
    parse_message(read_file(path, kMaxMessageBytes), "tensor", proto);
    const ExternalReader external(folder_of(path));
    const std::string who = "tensor '" + proto.name() + "'";
    check_tensor(proto, who, external);
    return NamedTensor{proto.name(), take_tensor(proto, who, external)};
  });
}

NamedDatum load_data(const std::filesystem::path& path, const Value& like) {
  return on_file("load", path, [&] {
    return parse_data(read_file(path, kMaxMessageBytes), declared_type(like), folder_of(path));
  });
}

void save_tensor(const std::filesystem::path& path, const Tensor& tensor, std::string_view name) {
  on_file("save", path, [&] {
    if (!tensor.defined()) fail(ErrorKind::argument, "there is no tensor");
    pb::TensorProto proto = new_tensor_proto();
    if (!name.empty()) proto.set_name(std::string(name));
    put_tensor(tensor, proto);
    AtomicFile file(path);
    write_message(proto, file);
    file.commit();
  });
}

}  // namespace graft::onnx
