// Real: a binary floating-point number made of integers, for the few places of the solver that
// need a fraction. The same bits on every machine and with every compiler, which float and double
// do not promise (contraction, extended precision). 62-bit mantissa, truncating. A value type.
#pragma once

#include <bit>
#include <cstdint>

namespace ymir {

class Real {
 public:
  Real() = default;
  Real(std::int64_t value) : Real(value, 0) {}  // NOLINT(google-explicit-constructor)

  bool is_zero() const { return mantissa_ == 0; }
  bool is_negative() const { return mantissa_ < 0; }
  Real operator-() const { return {-mantissa_, exponent_}; }
  friend Real operator+(Real a, Real b) {
    if (a.mantissa_ == 0) return b;
    if (b.mantissa_ == 0) return a;
    if (a.exponent_ < b.exponent_) return b + a;
    const int shift = a.exponent_ - b.exponent_;
    if (shift > 62) return a;
    // Both mantissas have at most 62 bits, so the sum has at most 63.
    return {a.mantissa_ + (b.mantissa_ >> shift), a.exponent_};
  }
  friend Real operator-(Real a, Real b) { return a + -b; }
  friend Real operator*(Real a, Real b) {
    const Wide product = static_cast<Wide>(a.mantissa_) * b.mantissa_;
    return {static_cast<std::int64_t>(product >> 62), a.exponent_ + b.exponent_ + 62};
  }
  friend Real operator/(Real a, Real b) {  // b != 0
    const Wide quotient = (static_cast<Wide>(a.mantissa_) << 61) / b.mantissa_;
    return {static_cast<std::int64_t>(quotient), a.exponent_ - b.exponent_ - 61};
  }
  friend bool operator<(Real a, Real b) { return (a - b).is_negative(); }

  // Towards zero; far too large values are cut at +-2^62.
  std::int64_t to_integer() const {
    if (exponent_ > 0)
      return mantissa_ == 0 ? 0 : (mantissa_ < 0 ? -1 : 1) * (std::int64_t{1} << 62);
    if (exponent_ < -62) return 0;
    return mantissa_ / (std::int64_t{1} << -exponent_);
  }

 private:
  __extension__ typedef __int128 Wide;
  // Normalised: zero, or 2^61 <= |mantissa| < 2^62 (+1 for the asymmetric end).
  Real(std::int64_t mantissa, int exponent) : mantissa_(mantissa), exponent_(exponent) {
    if (mantissa == 0) {
      exponent_ = 0;
      return;
    }
    const auto size = static_cast<std::uint64_t>(mantissa < 0 ? ~mantissa : mantissa);
    const int shift = std::countl_zero(size) - 2;  // >= -1
    if (shift < 0) {
      mantissa_ >>= 1;
    } else {
      mantissa_ = static_cast<std::int64_t>(static_cast<std::uint64_t>(mantissa_) << shift);
    }
    exponent_ -= shift;
  }

  std::int64_t mantissa_ = 0;
  int exponent_ = 0;
};

}  // namespace ymir
