// A file is: the length of the header (u64, lowest byte first), the header (JSON: for each tensor
// dtype, shape and the range of its bytes), the bytes of all tensors.
#include "io/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "core/base/error.h"
#include "io/file.h"

namespace graft::safetensors {
namespace {

using Json = nlohmann::json;

static_assert(std::endian::native == std::endian::little, "tensors are read as they lie");

constexpr std::string_view kMetadata = "__metadata__";
/// The most that the format allows.
constexpr std::uint64_t kMostHeaderBytes = 100'000'000;
/// Tensors begin at a multiple of this, so that they may be mapped.
constexpr std::size_t kAlignment = 8;

constexpr std::array<std::pair<std::string_view, DType>, 18> kTypes{{{"F32", DType::f32},
                                                                     {"F64", DType::f64},
                                                                     {"F16", DType::f16},
                                                                     {"BF16", DType::bf16},
                                                                     {"I64", DType::i64},
                                                                     {"I32", DType::i32},
                                                                     {"I16", DType::i16},
                                                                     {"I8", DType::i8},
                                                                     {"U64", DType::u64},
                                                                     {"U32", DType::u32},
                                                                     {"U16", DType::u16},
                                                                     {"U8", DType::u8},
                                                                     {"BOOL", DType::boolean},
                                                                     {"C64", DType::c64},
                                                                     {"F8_E4M3", DType::f8e4m3fn},
                                                                     {"F8_E5M2", DType::f8e5m2},
                                                                     {"F8_E8M0", DType::f8e8m0},
                                                                     {"C128", DType::c128}}};

DType dtype_of_name(const std::string& wanted, const std::string& tensor) {
  for (const auto& [name, dtype] : kTypes) {
    if (name == wanted) return dtype;
  }
  fail(ErrorKind::unsupported, "tensor '", tensor, "' has elements of type '", wanted,
       "', which Graft does not read");
}

std::string_view name_of_dtype(const NamedTensor& named) {
  for (const auto& [name, dtype] : kTypes) {
    if (dtype == named.tensor.dtype()) return name;
  }
  fail(ErrorKind::type, "safetensors: the format has no element type for '", named.name, "' ",
       describe(named.tensor));
}

struct Entry {
  std::string name;
  DType dtype = DType::undefined;
  Shape shape;
  std::uint64_t first = 0;
  std::uint64_t last = 0;
};

/// A whole number of at least 0; JSON's 1.0 and -1 are none.
std::uint64_t count_of(const Json& value, const std::string& tensor, std::string_view what) {
  if (!value.is_number_unsigned()) {
    fail(ErrorKind::io, "tensor '", tensor, "': ", what, " is ", value.dump().substr(0, 40),
         ", wanted a whole number");
  }
  return value.get<std::uint64_t>();
}

const Json& member(const Json& entry, const char* key, const std::string& tensor) {
  const auto at = entry.find(key);
  if (at == entry.end()) fail(ErrorKind::io, "tensor '", tensor, "' has no ", key);
  return *at;
}

Shape shape_of(const Json& dims, const std::string& tensor) {
  if (!dims.is_array()) fail(ErrorKind::io, "tensor '", tensor, "': shape is no list");
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  std::vector<std::int64_t> shape;
  for (const Json& dim : dims) {
    const std::uint64_t size = count_of(dim, tensor, "a dim");
    if (size > kMost) fail(ErrorKind::io, "tensor '", tensor, "': a dim is ", size);
    shape.push_back(static_cast<std::int64_t>(size));
  }
  return Shape(std::move(shape));
}

Entry parse_entry(const std::string& name, const Json& entry) {
  if (!entry.is_object()) fail(ErrorKind::io, "tensor '", name, "' is described by no object");
  const Json& dtype = member(entry, "dtype", name);
  const Json& offsets = member(entry, "data_offsets", name);
  if (!dtype.is_string() || !offsets.is_array() || offsets.size() != 2) {
    fail(ErrorKind::io, "tensor '", name, "': wanted a dtype and two data_offsets");
  }
  Entry parsed{.name = name,
               .dtype = dtype_of_name(dtype.get<std::string>(), name),
               .shape = shape_of(member(entry, "shape", name), name),
               .first = count_of(offsets[0], name, "an offset"),
               .last = count_of(offsets[1], name, "an offset")};
  const std::size_t needed = bytes_of(parsed.dtype, parsed.shape.size());
  if (parsed.last < parsed.first || parsed.last - parsed.first != needed) {
    fail(ErrorKind::io, "tensor '", name, "' ", describe(parsed.dtype, parsed.shape), " needs ",
         needed, " bytes, its place is ", parsed.first, " to ", parsed.last);
  }
  return parsed;
}

/// Throws unless nothing lies between the tensors, or behind them.
void check_places(std::vector<Entry>& entries, std::uint64_t data_bytes) {
  std::ranges::stable_sort(entries, {}, [](const Entry& e) { return std::pair(e.first, e.last); });
  std::uint64_t at = 0;
  for (const Entry& entry : entries) {
    if (entry.first != at) {
      fail(ErrorKind::io, "tensor '", entry.name, "' begins at byte ", entry.first, ", wanted ", at,
           ", where the one before ends");
    }
    at = entry.last;
  }
  if (at != data_bytes) {
    fail(ErrorKind::io, "the tensors take ", at, " bytes, the file has ", data_bytes,
         " for them: it is cut off, or something follows");
  }
}

/// What the parser would take: of two entries with one name the last, and more lists in lists than
/// a header has, of which what walks them later would need a stack for each.
class HeaderCheck : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return true; }
  bool boolean(bool /*value*/) override { return true; }
  bool number_integer(std::int64_t /*value*/) override { return true; }
  bool number_unsigned(std::uint64_t /*value*/) override { return true; }
  bool number_float(double /*value*/, const std::string& /*text*/) override { return true; }
  bool string(std::string& /*value*/) override { return true; }
  bool binary(Json::binary_t& /*value*/) override { return true; }
  bool start_object(std::size_t /*size*/) override {
    open();
    names_[static_cast<std::size_t>(depth_)].clear();
    return true;
  }
  bool start_array(std::size_t /*size*/) override { return open(); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(std::string& name) override {
    if (!names_[static_cast<std::size_t>(depth_)].insert(name).second) {
      fail(ErrorKind::io, "'", name, "' is there twice");
    }
    return true;
  }
  bool parse_error(std::size_t /*place*/, const std::string& /*token*/,
                   const Json::exception& /*error*/) override {
    return false;  // the parser says it
  }

 private:
  static constexpr int kMostDepth = 4;

  bool open() {
    if (++depth_ > kMostDepth) fail(ErrorKind::io, "the header holds lists in lists in lists");
    return true;
  }
  bool close() {
    --depth_;
    return true;
  }

  int depth_ = 0;
  std::array<std::set<std::string>, kMostDepth + 1> names_;  // of the open object of each depth
};

Json parse_json(const std::string& text) {
  HeaderCheck check;
  Json::sax_parse(text, &check);
  Json header = Json::parse(text);
  if (!header.is_object()) fail(ErrorKind::io, "the header is no object");
  return header;
}

void take_metadata(const Json& from, Content& into) {
  if (!from.is_object()) fail(ErrorKind::io, kMetadata, " is no object");
  for (const auto& [key, value] : from.items()) {
    if (!value.is_string()) fail(ErrorKind::io, kMetadata, " '", key, "' is no text");
    into.metadata.emplace_back(key, value.get<std::string>());
  }
}

Content read(const File& file) {
  std::uint64_t header_bytes = 0;
  file.read(0, &header_bytes, sizeof(header_bytes));
  const std::uint64_t rest = file.size() - sizeof(header_bytes);
  if (header_bytes > std::min(rest, kMostHeaderBytes)) {
    fail(ErrorKind::io, "the header needs ", header_bytes, " bytes, ", rest,
         " are there: this is no safetensors file, or it is cut off");
  }
  std::string text = make_buffer(header_bytes, file.name());
  file.read(sizeof(header_bytes), text.data(), text.size());
  const Json header = parse_json(text);

  Content content;
  std::vector<Entry> entries;
  for (const auto& [name, entry] : header.items()) {
    if (name == kMetadata) {
      take_metadata(entry, content);
    } else {
      entries.push_back(parse_entry(name, entry));
    }
  }
  check_places(entries, rest - header_bytes);
  const std::uint64_t start = sizeof(header_bytes) + header_bytes;
  for (const Entry& entry : entries) {
    const Tensor tensor = Tensor::empty(entry.dtype, entry.shape);
    file.read(start + entry.first, tensor.data(), tensor.bytes());
    if (entry.dtype == DType::boolean) {
      auto* const raw = static_cast<unsigned char*>(tensor.data());
      for (std::size_t i = 0; i < tensor.bytes(); ++i) raw[i] = raw[i] != 0 ? 1 : 0;
    }
    content.tensors.push_back({entry.name, tensor});
  }
  return content;
}

/// Those of wide elements first: then each begins at a multiple of its element's size.
std::vector<const NamedTensor*> in_file_order(const std::vector<NamedTensor>& tensors) {
  std::set<std::string_view> names{kMetadata};
  std::vector<const NamedTensor*> order;
  for (const NamedTensor& named : tensors) {
    if (named.name.empty() || !names.insert(named.name).second) {
      fail(ErrorKind::argument, "safetensors: the name '", named.name,
           "' is empty, taken or there twice");
    }
    order.push_back(&named);
  }
  std::ranges::stable_sort(order, std::ranges::greater{},
                           [](const NamedTensor* t) { return bits_of(t->tensor.dtype()); });
  return order;
}

/// Entry by entry: an object that keeps their order looks for each name among all before it.
std::string header_of(const std::vector<const NamedTensor*>& order, const Content& content) {
  using Ordered = nlohmann::ordered_json;
  std::string text;
  const auto add = [&](std::string_view name, const Ordered& entry) {
    text.append(text.empty() ? "{" : ",").append(Json(name).dump()).append(":");
    text.append(entry.dump());
  };
  Ordered metadata;
  for (const auto& [key, value] : content.metadata) {
    if (metadata.contains(key)) {
      fail(ErrorKind::argument, "safetensors: the metadata '", key, "' is there twice");
    }
    metadata[key] = value;
  }
  if (!metadata.empty()) add(kMetadata, metadata);
  std::uint64_t at = 0;
  for (const NamedTensor* named : order) {
    const std::uint64_t end = at + named->tensor.bytes();
    add(named->name, {{"dtype", name_of_dtype(*named)},
                      {"shape", named->tensor.shape().dims()},
                      {"data_offsets", {at, end}}});
    at = end;
  }
  text.append(text.empty() ? "{}" : "}");
  text.append((kAlignment - text.size() % kAlignment) % kAlignment, ' ');
  return text;
}

}  // namespace

Content load(const std::filesystem::path& path) {
  try {
    return read(File::open(path));
  } catch (const Json::exception& error) {
    fail(ErrorKind::io, "cannot load '", path.string(), "': the header: ", error.what());
  } catch (const Error& error) {
    const bool is_about_file = error.kind() == ErrorKind::shape;  // sizes that overflow
    fail(is_about_file ? ErrorKind::io : error.kind(), "cannot load '", path.string(),
         "': ", error.what());
  }
}

void save(const std::filesystem::path& path, const Content& content) {
  const std::vector<const NamedTensor*> order = in_file_order(content.tensors);
  std::string header;
  try {
    header = header_of(order, content);
  } catch (const Json::exception& error) {  // a name that is no UTF-8
    fail(ErrorKind::argument, "safetensors: ", error.what());
  }
  const auto header_bytes = static_cast<std::uint64_t>(header.size());
  AtomicFile file(path);
  file.write(&header_bytes, sizeof(header_bytes));
  file.write(header);
  for (const NamedTensor* named : order) {
    const Tensor host = named->tensor.to(cpu());
    file.write(host.data(), host.bytes());
  }
  file.commit();
}

}  // namespace graft::safetensors
