#include "io/npy.h"

#include <array>
#include <bit>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "io/file.h"

namespace graft::npy {
namespace {

static_assert(std::endian::native == std::endian::little, "arrays are read as they lie");

using namespace std::string_view_literals;

constexpr std::string_view kMagic = "\x93NUMPY"sv;
/// The header's length is a multiple of this, so that data may be mapped.
constexpr std::size_t kAlignment = 64;

constexpr std::array<std::pair<std::string_view, DType>, 14> kTypes{{{"b1", DType::boolean},
                                                                     {"i1", DType::i8},
                                                                     {"i2", DType::i16},
                                                                     {"i4", DType::i32},
                                                                     {"i8", DType::i64},
                                                                     {"u1", DType::u8},
                                                                     {"u2", DType::u16},
                                                                     {"u4", DType::u32},
                                                                     {"u8", DType::u64},
                                                                     {"f2", DType::f16},
                                                                     {"f4", DType::f32},
                                                                     {"f8", DType::f64},
                                                                     {"c8", DType::c64},
                                                                     {"c16", DType::c128}}};

struct Header {
  DType dtype = DType::undefined;
  bool fortran_order = false;
  Shape shape;
};

/// Reads the one Python literal that a header is:
/// {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : text_(text) {}

  Header parse() {
    Header header;
    int seen = 0;
    expect('{');
    while (!accept('}')) {
      const std::string_view key = quoted();
      expect(':');
      if (key == "descr") {
        header.dtype = dtype();
        seen |= 1;
      } else if (key == "fortran_order") {
        header.fortran_order = boolean();
        seen |= 2;
      } else if (key == "shape") {
        header.shape = shape();
        seen |= 4;
      } else {
        fail(ErrorKind::io, "npy: the header has an unknown key '", key, "'");
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    if (seen != 7) fail(ErrorKind::io, "npy: the header lacks descr, fortran_order or shape");
    skip_space();
    if (at_ != text_.size()) malformed();
    return header;
  }

 private:
  [[noreturn]] void malformed() const {
    fail(ErrorKind::io, "npy: the header is malformed at byte ", at_, ": '", text_.substr(0, 200),
         "'");
  }
  void skip_space() {
    while (at_ < text_.size() && " \n\t\r"sv.find(text_[at_]) != std::string_view::npos) ++at_;
  }
  bool accept(char wanted) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }
  void expect(char wanted) {
    if (!accept(wanted)) malformed();
  }

  std::string_view quoted() {
    skip_space();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"') malformed();
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) malformed();
    const std::string_view inner = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return inner;
  }

  DType dtype() {
    skip_space();
    if (at_ < text_.size() && text_[at_] == '[') {
      fail(ErrorKind::unsupported, "npy: structured arrays are not supported");
    }
    const std::string_view descr = quoted();
    const bool one_byte = descr.size() == 3 && descr[0] == '>' && descr[2] == '1';
    if (!descr.empty() && ("<=|"sv.find(descr[0]) != std::string_view::npos || one_byte)) {
      for (const auto& [code, type] : kTypes) {
        if (descr.substr(1) == code) return type;
      }
    }
    fail(ErrorKind::unsupported, "npy: element type '", descr, "' is not supported");
  }

  bool boolean() {
    skip_space();
    for (const auto& [word, value] : {std::pair{"True"sv, true}, std::pair{"False"sv, false}}) {
      if (text_.substr(at_).starts_with(word)) {
        at_ += word.size();
        return value;
      }
    }
    malformed();
  }

  Shape shape() {
    std::vector<std::int64_t> dims;
    expect('(');
    while (!accept(')')) {
      skip_space();
      std::int64_t dim = 0;
      const auto [end, error] =
          std::from_chars(text_.data() + at_, text_.data() + text_.size(), dim);
      if (error != std::errc() || dim < 0) malformed();
      dims.push_back(dim);
      at_ = static_cast<std::size_t>(end - text_.data());
      if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // Python 2 wrote long numbers so
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return Shape(std::move(dims));
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

/// Splits the file into the header's text and the data.
std::pair<std::string_view, std::string_view> split(std::string_view bytes) {
  if (!bytes.starts_with(kMagic)) fail(ErrorKind::io, "npy: the file does not start as one");
  if (bytes.size() < kMagic.size() + 2) fail(ErrorKind::io, "npy: the file ends in its header");
  const int version = static_cast<unsigned char>(bytes[kMagic.size()]);
  if (version < 1 || version > 3) fail(ErrorKind::unsupported, "npy: format version ", version);
  const std::size_t width = version == 1 ? 2 : 4;
  std::string_view rest = bytes.substr(kMagic.size() + 2);
  std::uint32_t length = 0;
  if (rest.size() < width) fail(ErrorKind::io, "npy: the file ends in its header");
  std::memcpy(&length, rest.data(), width);
  rest.remove_prefix(width);
  if (length > rest.size()) {
    fail(ErrorKind::io, "npy: the header needs ", length, " bytes, ", rest.size(), " are there");
  }
  return {rest.substr(0, length), rest.substr(length)};
}

/// Elements lie first axis first: walks the target in its order and steps through the source.
Tensor from_fortran_order(DType dtype, const Shape& shape, const char* source) {
  Tensor tensor = Tensor::empty(dtype, shape);
  const std::size_t width = static_cast<std::size_t>(bits_of(dtype)) / 8;
  const auto rank = static_cast<std::size_t>(shape.rank());
  std::vector<std::int64_t> strides(rank, 1);
  for (std::size_t i = 1; i < rank; ++i) {
    strides[i] = strides[i - 1] * shape[static_cast<int>(i) - 1];
  }
  std::vector<std::int64_t> index(rank, 0);
  auto* target = static_cast<char*>(tensor.data());
  std::int64_t from = 0;
  for (std::int64_t count = shape.size(); count > 0; --count) {
    std::memcpy(target, source + static_cast<std::size_t>(from) * width, width);
    target += width;
    for (std::size_t axis = rank; axis-- > 0;) {
      from += strides[axis];
      if (++index[axis] < shape[static_cast<int>(axis)]) break;
      from -= strides[axis] * index[axis];
      index[axis] = 0;
    }
  }
  return tensor;
}

std::string header_text(std::string_view code, const Shape& shape) {
  const bool one_byte = code[1] == '1' && code.size() == 2;
  std::string header =
      text("{'descr': '", one_byte ? '|' : '<', code, "', 'fortran_order': False, 'shape': (");
  for (const std::int64_t dim : shape) header += text(dim, ", ");
  if (shape.rank() > 1) header.resize(header.size() - 2);
  if (shape.rank() == 1) header.pop_back();
  return header + "), }";
}

}  // namespace

Tensor parse(std::string_view bytes) {
  const auto [header_bytes, data] = split(bytes);
  Header header;
  std::size_t needed = 0;
  try {
    header = HeaderParser(header_bytes).parse();
    needed = bytes_of(header.dtype, header.shape.size());
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::shape) throw;
    fail(ErrorKind::io, "npy: ", error.what());
  }
  if (data.size() != needed) {
    fail(ErrorKind::io, "npy: ", describe(header.dtype, header.shape), " needs ", needed,
         " bytes, found ", data.size());
  }
  Tensor tensor = header.fortran_order && header.shape.rank() > 1
                      ? from_fortran_order(header.dtype, header.shape, data.data())
                      : Tensor::from_bytes(header.dtype, header.shape, data.data(), data.size());
  if (header.dtype == DType::boolean) {
    auto* const raw = static_cast<unsigned char*>(tensor.data());
    for (std::size_t i = 0; i < needed; ++i) raw[i] = raw[i] != 0 ? 1 : 0;
  }
  return tensor;
}

Tensor load(const std::filesystem::path& path) {
  try {
    return parse(read_file(path, std::numeric_limits<std::int64_t>::max()));
  } catch (const Error& error) {
    fail(error.kind(), "cannot load '", path.string(), "': ", error.what());
  }
}

std::string serialize(const Tensor& tensor) {
  for (const auto& [code, dtype] : kTypes) {
    if (dtype != tensor.dtype()) continue;
    std::string header = header_text(code, tensor.shape());
    const std::size_t unpadded = kMagic.size() + 4 + header.size() + 1;
    header.append((kAlignment - unpadded % kAlignment) % kAlignment, ' ');
    header += '\n';
    if (header.size() > std::numeric_limits<std::uint16_t>::max()) {
      fail(ErrorKind::unsupported, "npy: rank ", tensor.rank(), " is too large");
    }
    const auto length = static_cast<std::uint16_t>(header.size());
    std::string bytes(kMagic);
    bytes += "\x01\x00"sv;
    bytes.append(reinterpret_cast<const char*>(&length), sizeof(length));
    bytes += header;
    const Tensor host = tensor.to(cpu());
    return bytes.append(static_cast<const char*>(host.data()), host.bytes());
  }
  fail(ErrorKind::type, "npy: NumPy has no element type for ", tensor);
}

void save(const std::filesystem::path& path, const Tensor& tensor) {
  write_file(path, serialize(tensor));
}

}  // namespace graft::npy
