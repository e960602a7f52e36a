// Boxed: a value that lies on the heap, so that what holds it stays small. Copied like the value
// itself; never empty, but when moved from.
#pragma once

#include <memory>
#include <utility>

namespace ymir {

template <class T>
class Boxed {
 public:
  Boxed() : held_(std::make_unique<T>()) {}
  Boxed(T value) : held_(std::make_unique<T>(std::move(value))) {}  // NOLINT: as good as a T
  Boxed(const Boxed& other) : held_(std::make_unique<T>(*other)) {}
  Boxed(Boxed&&) noexcept = default;
  Boxed& operator=(Boxed other) noexcept {
    held_ = std::move(other.held_);
    return *this;
  }
  ~Boxed() = default;

  T& operator*() { return *held_; }
  const T& operator*() const { return *held_; }
  T* operator->() { return held_.get(); }
  const T* operator->() const { return held_.get(); }

 private:
  std::unique_ptr<T> held_;
};

}  // namespace ymir
