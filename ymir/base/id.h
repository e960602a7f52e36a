// Id: a typed integer name, so that a JobId can't be passed where a RunId is meant. 0 names nobody.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace ymir {

template <class Tag>
struct Id {
  std::uint64_t value = 0;
  auto operator<=>(const Id&) const = default;
  explicit operator bool() const { return value != 0; }
};

}  // namespace ymir

template <class Tag>
struct std::hash<ymir::Id<Tag>> {
  std::size_t operator()(ymir::Id<Tag> id) const noexcept {
    return std::hash<std::uint64_t>{}(id.value);
  }
};
