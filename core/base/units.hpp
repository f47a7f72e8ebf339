/// Numbers with a dimension. Only quantities of the same dimension can be added, and only the
/// products below exist, so dimension errors do not compile. Simulated time is in integer
/// picoseconds (`Ticks`).
#pragma once

#include <compare>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace meshwright {

/// a / b rounded up, for a >= 0 and b > 0.
template <std::integral A, std::integral B>
constexpr std::common_type_t<A, B> divide_up(A a, B b) {
  return (a + b - 1) / b;
}

template <class Dimension, class Rep = double>
struct Quantity {
  Rep value{};  ///< in the base unit of Dimension: seconds, bytes, flop, bytes/s, flop/s, ps
  constexpr Quantity() = default;
  constexpr explicit Quantity(Rep v) : value(v) {}
  friend constexpr auto operator<=>(Quantity, Quantity) = default;
  constexpr Quantity& operator+=(Quantity other) {
    value += other.value;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity other) {
    value -= other.value;
    return *this;
  }
  friend constexpr Quantity operator+(Quantity a, Quantity b) {
    return Quantity{static_cast<Rep>(a.value + b.value)};
  }
  friend constexpr Quantity operator-(Quantity a, Quantity b) {
    return Quantity{static_cast<Rep>(a.value - b.value)};
  }
  friend constexpr Quantity operator-(Quantity a) { return Quantity{static_cast<Rep>(-a.value)}; }
  friend constexpr Quantity operator*(Quantity a, Rep k) { return Quantity{a.value * k}; }
  friend constexpr Quantity operator*(Rep k, Quantity a) { return Quantity{a.value * k}; }
  friend constexpr Quantity operator/(Quantity a, Rep k) { return Quantity{a.value / k}; }
  static constexpr Quantity max() { return Quantity{std::numeric_limits<Rep>::max()}; }
};

using Seconds = Quantity<struct TimeDimension>;
using Bytes = Quantity<struct DataDimension, std::int64_t>;
using Flops = Quantity<struct WorkDimension>;  ///< floating-point operations (a count, not a rate)
using BytesPerSecond = Quantity<struct BandwidthDimension>;
using FlopsPerSecond = Quantity<struct ComputeRateDimension>;
using Watts = Quantity<struct PowerDimension>;
using DollarsPerHour = Quantity<struct PriceDimension>;      ///< US dollars
using Ticks = Quantity<struct TickDimension, std::int64_t>;  ///< picoseconds of simulated time

inline constexpr std::int64_t kTicksPerSecond = 1'000'000'000'000;
inline constexpr std::int64_t kTicksPerNanosecond = 1'000;

constexpr Seconds operator/(Bytes data, BytesPerSecond rate) {
  return Seconds(static_cast<double>(data.value) / rate.value);
}
constexpr Seconds operator/(Flops work, FlopsPerSecond rate) {
  return Seconds(work.value / rate.value);
}
constexpr BytesPerSecond operator/(Bytes data, Seconds time) {
  return BytesPerSecond(static_cast<double>(data.value) / time.value);
}
constexpr FlopsPerSecond operator/(Flops work, Seconds time) {
  return FlopsPerSecond(work.value / time.value);
}
/// Dimensionless ratio of two quantities of the same dimension.
template <class Dimension, class Rep>
constexpr double ratio(Quantity<Dimension, Rep> a, Quantity<Dimension, Rep> b) {
  return static_cast<double>(a.value) / static_cast<double>(b.value);
}

/// The only conversion from seconds to Ticks. Rounds up, so that work never becomes free. The time
/// must be in [0, 106 days], the range of Ticks (MW_CHECK).
Ticks to_ticks(Seconds time);
constexpr Seconds to_seconds(Ticks time) {
  return Seconds(static_cast<double>(time.value) / static_cast<double>(kTicksPerSecond));
}
/// Whole nanoseconds, rounded to nearest: the unit of times in files.
constexpr std::int64_t to_nanoseconds(Ticks time) {
  return (time.value + kTicksPerNanosecond / 2) / kTicksPerNanosecond;
}

namespace literals {
constexpr Bytes operator""_B(unsigned long long n) { return Bytes(static_cast<std::int64_t>(n)); }
constexpr Bytes operator""_GiB(unsigned long long n) {
  return Bytes(static_cast<std::int64_t>(n) << 30);  // memory sizes are binary
}
constexpr BytesPerSecond operator""_GBps(unsigned long long n) {
  return BytesPerSecond(1e9 * static_cast<double>(n));  // link speeds are decimal
}
constexpr FlopsPerSecond operator""_TFLOPps(unsigned long long n) {
  return FlopsPerSecond(1e12 * static_cast<double>(n));
}
constexpr Seconds operator""_ms(unsigned long long n) {
  return Seconds(1e-3 * static_cast<double>(n));
}
}  // namespace literals

}  // namespace meshwright
