#include "io/wire/fields.h"

#include "io/wire/message.h"

namespace graft::onnx::wire {

MessageList::MessageList(const MessageList& other) {
  *this = other;
}

MessageList& MessageList::operator=(const MessageList& other) {
  std::vector<std::unique_ptr<Message>> copy;
  copy.reserve(other.all_.size());
  for (const auto& message : other.all_) copy.push_back(message->clone());
  all_ = std::move(copy);
  return *this;
}

MessageSlot::MessageSlot(const MessageSlot& other) {
  *this = other;
}

MessageSlot& MessageSlot::operator=(const MessageSlot& other) {
  message_ = other.message_ == nullptr ? nullptr : other.message_->clone();
  return *this;
}

}  // namespace graft::onnx::wire
