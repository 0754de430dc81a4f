#pragma once

#include <locale>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace graft {

/// What went wrong, so that a caller can choose what to do without reading the text.
enum class ErrorKind {
  io,           ///< a file cannot be opened, read or written
  model,        ///< the model's structure or bytes are not valid ONNX
  shape,        ///< dimensions do not fit
  type,         ///< element types do not fit
  device,       ///< no such device, or the device failed
  memory,       ///< an allocation or a byte budget cannot be met
  argument,     ///< the caller's request makes no sense
  unsupported,  ///< valid, but Graft cannot do it
  numeric,      ///< a computation gave NaN or infinity where the caller forbade it
};

/// "io", "model", ...
std::string_view name(ErrorKind kind);

/// The only exception type that leaves Graft's public interface. The text is lower case and
/// names the found and the wanted value, the node, and the remedy.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

/// Joins the streamed form of all arguments. Throws std::bad_alloc: a stream would keep that to
/// itself and cut the text off.
template <class... Args>
std::string text(const Args&... args) {
  std::ostringstream out;
  out.exceptions(std::ios::badbit);
  out.imbue(std::locale::classic());  // the program's locale must not group digits
  (out << ... << args);
  return out.str();
}

[[noreturn]] void throw_error(ErrorKind kind, const std::string& message);

/// Throws Error{kind} with the joined arguments:
/// `fail(ErrorKind::shape, "softmax: axis ", axis, " out of range for ", shape)`.
template <class... Args>
[[noreturn]] void fail(ErrorKind kind, const Args&... args) {
  throw_error(kind, text(args...));
}

}  // namespace graft
