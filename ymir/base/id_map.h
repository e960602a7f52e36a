// IdMap and IdSet: ordered containers of things named by an Id or a number, for the many look-ups
// of a round.
//
// The order of iteration is that of the ids, as in std::map and std::set. Ids that count up with
// few gaps, as those of jobs do, are found at once; others by a binary search through one array.
// Adding the largest id so far is cheap, adding or erasing elsewhere moves what stands behind it.
// What an IdMap holds never moves: references stay valid until their id is erased. One thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "ymir/base/result.h"

namespace ymir {

template <class Id>
class IdSet {
 public:
  using const_iterator = typename std::vector<Id>::const_iterator;
  IdSet() = default;
  IdSet(std::initializer_list<Id> ids) {
    for (const Id id : ids) insert(id);
  }
  const_iterator begin() const { return ids_.begin(); }
  const_iterator end() const { return ids_.end(); }
  std::size_t size() const { return ids_.size(); }
  bool empty() const { return ids_.empty(); }
  void reserve(std::size_t count) { ids_.reserve(count); }
  bool contains(Id id) const { return std::binary_search(begin(), end(), id); }

  // Whether it is new.
  bool insert(Id id) {
    if (ids_.empty() || ids_.back() < id) {
      ids_.push_back(id);
      return true;
    }
    const auto at = std::lower_bound(begin(), end(), id);
    if (*at == id) return false;
    ids_.insert(at, id);
    return true;
  }
  void erase(Id id) {
    const auto at = std::lower_bound(begin(), end(), id);
    if (at != end() && *at == id) ids_.erase(at);
  }

 private:
  std::vector<Id> ids_{};  // ascending
};

template <class Id, class T>
class IdMap {
 public:
  using value_type = std::pair<const Id, T>;

 private:
  struct Entry {
    Id id{};
    std::unique_ptr<value_type> held{};
  };
  template <class Value, class Base>
  class Iterator {
   public:
    using value_type = std::remove_const_t<Value>;
    using difference_type = std::ptrdiff_t;
    Iterator() = default;
    explicit Iterator(Base at) : at_(at) {}
    Value& operator*() const { return *at_->held; }
    Value* operator->() const { return at_->held.get(); }
    Iterator& operator++() { return ++at_, *this; }
    Iterator& operator--() { return --at_, *this; }
    Iterator operator++(int) { return Iterator(at_++); }
    Iterator operator--(int) { return Iterator(at_--); }
    bool operator==(const Iterator&) const = default;

   private:
    Base at_{};
  };

 public:
  using iterator = Iterator<value_type, typename std::vector<Entry>::iterator>;
  using const_iterator = Iterator<const value_type, typename std::vector<Entry>::const_iterator>;

  IdMap() = default;
  IdMap(const IdMap& other) {
    entries_.reserve(other.size());
    for (const Entry& entry : other.entries_)
      entries_.push_back({entry.id, std::make_unique<value_type>(*entry.held)});
  }
  IdMap(IdMap&&) noexcept = default;
  IdMap& operator=(IdMap other) noexcept {
    entries_ = std::move(other.entries_);
    return *this;
  }

  iterator begin() { return iterator(entries_.begin()); }
  iterator end() { return iterator(entries_.end()); }
  const_iterator begin() const { return const_iterator(entries_.begin()); }
  const_iterator end() const { return const_iterator(entries_.end()); }
  auto rbegin() const { return std::make_reverse_iterator(end()); }
  auto rend() const { return std::make_reverse_iterator(begin()); }
  std::size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  void clear() { entries_.clear(); }

  bool contains(Id id) const { return holds(position(id), id); }
  iterator find(Id id) {
    const std::size_t at = position(id);
    return iterator(entries_.begin() + (holds(at, id) ? std::ptrdiff_t(at) : std::ssize(entries_)));
  }
  const_iterator find(Id id) const {
    const std::size_t at = position(id);
    return const_iterator(entries_.begin() +
                          (holds(at, id) ? std::ptrdiff_t(at) : std::ssize(entries_)));
  }
  T& at(Id id) { return const_cast<T&>(std::as_const(*this).at(id)); }
  const T& at(Id id) const {
    const std::size_t at = position(id);
    YMIR_CHECK(holds(at, id), "no such id");
    return entries_[at].held->second;
  }
  T& operator[](Id id) {
    const std::size_t at = position(id);
    if (!holds(at, id))
      entries_.insert(entries_.begin() + std::ptrdiff_t(at),
                      Entry{id, std::make_unique<value_type>(id, T{})});
    return entries_[at].held->second;
  }
  void erase(Id id) {
    const std::size_t at = position(id);
    if (holds(at, id)) entries_.erase(entries_.begin() + std::ptrdiff_t(at));
  }

 private:
  bool holds(std::size_t at, Id id) const { return at < entries_.size() && entries_[at].id == id; }
  // Where the id stands, or would have to.
  std::size_t position(Id id) const {
    if (entries_.empty() || entries_.back().id < id) return entries_.size();
    const std::size_t guess = id.value - entries_.front().id.value;  // without gaps it stands there
    if (holds(guess, id)) return guess;
    return static_cast<std::size_t>(std::ranges::lower_bound(entries_, id, {}, &Entry::id) -
                                    entries_.begin());
  }

  std::vector<Entry> entries_{};  // ascending
};

}  // namespace ymir
