#include "io/onnx.h"

#include <algorithm>
#include <new>
#include <optional>

#include "core/base/time_limit.h"
#include "core/graph/verify.h"
#include "io/exporters/exporters.h"
#include "io/file.h"
#include "io/proto/checker.h"
#include "io/proto/data_proto.h"
#include "io/proto/format.h"
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

std::uint64_t size_limit(const LoadOptions& options) {
  return std::min(options.max_bytes, kMaxMessageBytes);
}

}  // namespace

Model load(const std::filesystem::path& path, const LoadOptions& options) {
  const TimeLimit time_limit;
  return on_file("load", path, [&] {
    OnArena<pb::ModelProto> proto;
    parse_message(File::open(path, size_limit(options)), "model", *proto);
    return build(*proto, folder_of_data(path, *proto));
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
    OnArena<pb::ModelProto> proto;
    parse_message(bytes, "model", *proto);
    return build(*proto, folder);
  } catch (const std::bad_alloc&) {
    fail(ErrorKind::memory, "cannot read a model of ", bytes.size(), " bytes: out of memory");
  }
}

void save(const Model& model, const std::filesystem::path& path, const SaveOptions& options) {
  on_file("save", path, [&] {
    AtomicFile file(path);
    std::optional<ExternalWriter> external;
    if (!options.external_data.empty()) {
      external.emplace(file.path(), options.external_data, options.external_threshold_bytes);
    }
    OnArena<pb::ModelProto> proto;
    put_model(model, *proto, external ? &*external : nullptr);
    write_bytes(*proto, file);
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
    parse_message(File::open(path, kMaxMessageBytes), "tensor", proto);
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
    write_bytes(proto, file);
    file.commit();
  });
}

}  // namespace graft::onnx
