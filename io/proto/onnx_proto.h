#pragma once

#ifdef GRAFT_OWN_MESSAGES
#include "io/wire/onnx_messages.h"
#else
#include <google/protobuf/arena.h>
#include <onnx/onnx-data.pb.h>
#include <onnx/onnx_pb.h>
#endif

namespace graft::onnx {

#ifdef GRAFT_OWN_MESSAGES

/// ONNX's messages by Graft's own reader and writer (adr/0076), and what they are made of.
namespace pb = wire;
using AnyMessage = wire::Message;
template <class T>
using Repeated = std::conditional_t<std::is_same_v<T, std::string>, wire::Strings, wire::List<T>>;
template <class T>
using RepeatedNumbers = wire::Numbers<T>;

template <class T>
class OnArena {
 public:
  T& operator*() { return message_; }

 private:
  T message_;
};

#else

/// The generated messages, in whatever namespace libonnx was built with, and what they are made of.
namespace pb = ONNX_NAMESPACE;
using AnyMessage = google::protobuf::Message;
template <class T>
using Repeated = google::protobuf::RepeatedPtrField<T>;
template <class T>
using RepeatedNumbers = google::protobuf::RepeatedField<T>;

/// A message whose parts lie together and are freed at once.
template <class T>
class OnArena {
 public:
  T& operator*() { return *message_; }

 private:
  google::protobuf::Arena arena_;
  T* message_ = google::protobuf::Arena::CreateMessage<T>(&arena_);
};

#endif

}  // namespace graft::onnx
