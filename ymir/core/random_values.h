// Random values of every type that is written down, for tests: fills what fields.h names.
#pragma once

#include <concepts>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "ymir/base/rng.h"
#include "ymir/core/fields.h"

namespace ymir {

class RandomValues {
 public:
  explicit RandomValues(std::uint64_t seed) : rng_(seed) {}

  template <class T>
  void operator()(const char*, T& value) {
    fill(value);
  }

  template <class T>
  T make() {
    T value{};
    fill(value);
    return value;
  }

  // One value of each alternative of a variant, in order.
  template <class Variant, std::size_t I = 0>
  void each(std::vector<Variant>& out) {
    if constexpr (I < std::variant_size_v<Variant>) {
      out.emplace_back(make<std::variant_alternative_t<I, Variant>>());
      each<Variant, I + 1>(out);
    }
  }

  Rng& rng() { return rng_; }

 private:
  void fill(bool& x) { x = rng_.chance(0.5); }
  void fill(double& x) {
    switch (rng_.below(5)) {
      case 0:
        x = std::numeric_limits<double>::infinity() * (rng_.chance(0.5) ? 1 : -1);
        break;
      case 1:
        x = static_cast<double>(rng_.between(-1000, 1000));
        break;
      default:
        x = rng_.uniform(-1, 1) * (rng_.chance(0.5) ? 1e-300 : 1e18);
    }
  }
  void fill(float& x) { x = static_cast<float>(rng_.uniform(-2, 2)); }
  template <std::integral T>
  void fill(T& x) {
    constexpr T low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
    x = rng_.chance(0.1) ? low : rng_.chance(0.1) ? high : static_cast<T>(rng_.next64());
  }
  template <class T>
    requires std::is_enum_v<T>
  void fill(T& x) {
    x = static_cast<T>(rng_.below(3));
  }
  void fill(std::string& x) {
    static const std::vector<std::string> pieces{"a", "Z9",   "\"", "\\", "\n", "\t",
                                                 "é", "日本", "😀", " ",  "{",  "\x01"};
    x.clear();
    for (std::uint64_t n = rng_.below(6); n > 0; --n) x += pieces[rng_.below(pieces.size())];
  }
  template <std::size_t N>
  void fill(ShortText<N>& x) {
    std::string text;
    do {
      fill(text);
    } while (text.size() > N);
    x = ShortText<N>(text);
  }
  void fill(RunId& x) { x.value = rng_.next64() >> rng_.below(64); }
  template <class Tag>
  void fill(Id<Tag>& x) {
    x.value = rng_.next64() >> (11 + rng_.below(53));
  }
  void fill(Seconds& x) { x = Seconds(rng_.uniform(0, 1e9)); }
  void fill(Time& x) { x = Time(Time::duration(rng_.between(0, 2'000'000'000'000'000))); }
  template <class T>
  void fill(std::optional<T>& x) {
    x.reset();
    if (rng_.chance(0.5)) fill(x.emplace());
  }
  template <class T>
  void fill(std::vector<T>& x) {
    x.clear();
    for (std::uint64_t n = rng_.below(4); n > 0; --n) fill(x.emplace_back());
  }
  template <class T>
  void fill(std::map<std::string, T>& x) {
    x.clear();
    for (std::uint64_t n = rng_.below(4); n > 0; --n) {
      std::string key;
      fill(key);
      fill(x[key]);
    }
  }
  template <class T>
    requires requires(RandomValues& v, T& x) { fields(v, x); }
  void fill(T& x) {
    fields(*this, x);
  }

  Rng rng_;
};

}  // namespace ymir
