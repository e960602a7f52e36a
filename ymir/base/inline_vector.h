// InlineVector: a list of at most N values that lie in the object itself, for the ones and twos of
// which a round makes many thousands. Used like a std::vector; one value too many aborts.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>

#include "ymir/base/result.h"

namespace ymir {

template <class T, std::size_t N>
class InlineVector {
 public:
  using value_type = T;
  InlineVector() = default;
  InlineVector(std::initializer_list<T> values) {
    for (const T& value : values) push_back(value);
  }

  T* begin() { return values_.data(); }
  T* end() { return values_.data() + size_; }
  const T* begin() const { return values_.data(); }
  const T* end() const { return values_.data() + size_; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](std::size_t i) { return values_[i]; }
  const T& operator[](std::size_t i) const { return values_[i]; }
  T& front() { return values_[0]; }
  const T& front() const { return values_[0]; }
  void push_back(const T& value) {
    YMIR_CHECK(size_ < N, "a list is full");
    values_[size_++] = value;
  }

 private:
  std::array<T, N> values_{};
  std::size_t size_ = 0;
};

}  // namespace ymir
