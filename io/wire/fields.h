#pragma once

#include <cstddef>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

// What messages are made of, with the functions of protobuf's containers that io/proto calls.
namespace graft::onnx::wire {

class Message;

/// Repeated strings.
class Strings {
 public:
  int size() const { return static_cast<int>(all_.size()); }
  bool empty() const { return all_.empty(); }
  void Clear() { all_.clear(); }
  std::string* Add() { return &all_.emplace_back(); }
  const std::string& operator[](int i) const { return all_[static_cast<std::size_t>(i)]; }
  std::string& operator[](int i) { return all_[static_cast<std::size_t>(i)]; }
  auto begin() { return all_.begin(); }
  auto end() { return all_.end(); }
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }

 private:
  std::vector<std::string> all_;
};

/// Repeated numbers.
template <class T>
class Numbers {
 public:
  using value_type = T;

  int size() const { return static_cast<int>(all_.size()); }
  bool empty() const { return all_.empty(); }
  void Clear() { all_.clear(); }
  void Add(T value) { all_.push_back(value); }
  void Reserve(int count) { all_.reserve(static_cast<std::size_t>(count)); }
  void Resize(int count, T value) { all_.resize(static_cast<std::size_t>(count), value); }
  template <class It>
  void Assign(It first, It last) {
    all_.assign(first, last);
  }
  T operator[](int i) const { return all_[static_cast<std::size_t>(i)]; }
  const T* data() const { return all_.data(); }
  T* mutable_data() { return all_.data(); }
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }

 private:
  std::vector<T> all_;
};

/// Repeated messages, which stay where they are when the list changes.
class MessageList {
 public:
  MessageList() = default;
  MessageList(const MessageList& other);
  MessageList(MessageList&&) noexcept = default;
  MessageList& operator=(const MessageList& other);
  MessageList& operator=(MessageList&&) noexcept = default;
  virtual ~MessageList() = default;

  int size() const { return static_cast<int>(all_.size()); }
  bool empty() const { return all_.empty(); }
  void Clear() { all_.clear(); }
  void Reserve(int count) { all_.reserve(static_cast<std::size_t>(count)); }
  void RemoveLast() { all_.pop_back(); }
  void SwapElements(int a, int b) {
    std::swap(all_[static_cast<std::size_t>(a)], all_[static_cast<std::size_t>(b)]);
  }
  Message& add() { return *all_.emplace_back(make()); }
  const Message& at(int i) const { return *all_[static_cast<std::size_t>(i)]; }

 protected:
  virtual std::unique_ptr<Message> make() const = 0;

  std::vector<std::unique_ptr<Message>> all_;
};

/// The same with the type that its messages have.
template <class T>
class List final : public MessageList {
 public:
  template <class Element, class Base>
  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = T;
    using difference_type = std::ptrdiff_t;
    using pointer = Element*;
    using reference = Element&;

    Iterator() = default;
    explicit Iterator(Base at) : at_(at) {}
    reference operator*() const { return static_cast<Element&>(**at_); }
    pointer operator->() const { return &**this; }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    Iterator operator++(int) { return Iterator(at_++); }
    friend bool operator==(const Iterator&, const Iterator&) = default;

   private:
    Base at_{};
  };
  using Base = std::vector<std::unique_ptr<Message>>;

  T* Add() { return static_cast<T*>(&add()); }
  void Add(T&& message) { *Add() = std::move(message); }
  const T& operator[](int i) const { return static_cast<const T&>(at(i)); }
  T& operator[](int i) { return static_cast<T&>(*all_[static_cast<std::size_t>(i)]); }
  /// The last one.
  T* rbegin() { return &(*this)[size() - 1]; }
  auto begin() { return Iterator<T, Base::iterator>(all_.begin()); }
  auto end() { return Iterator<T, Base::iterator>(all_.end()); }
  auto begin() const { return Iterator<const T, Base::const_iterator>(all_.begin()); }
  auto end() const { return Iterator<const T, Base::const_iterator>(all_.end()); }

 protected:
  std::unique_ptr<Message> make() const override { return std::make_unique<T>(); }
};

/// One message, which may be left out. A copy is a copy of the message.
class MessageSlot {
 public:
  MessageSlot() = default;
  MessageSlot(const MessageSlot& other);
  MessageSlot(MessageSlot&&) noexcept = default;
  MessageSlot& operator=(const MessageSlot& other);
  MessageSlot& operator=(MessageSlot&&) noexcept = default;
  virtual ~MessageSlot() = default;

  const Message* find() const { return message_.get(); }
  Message& get() {
    if (message_ == nullptr) message_ = make();
    return *message_;
  }
  void clear() { message_.reset(); }

 protected:
  virtual std::unique_ptr<Message> make() const = 0;

  std::unique_ptr<Message> message_;
};

template <class T>
class Slot final : public MessageSlot {
 protected:
  std::unique_ptr<Message> make() const override { return std::make_unique<T>(); }
};

}  // namespace graft::onnx::wire
