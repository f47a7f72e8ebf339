/// Numbers that random values are made of: from a seed, the same on every machine, or from the
/// bytes of a fuzzer, which then decides about every choice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

#include "core/base/check.hpp"
#include "core/base/random.hpp"

namespace meshwright {

class Choices {
 public:
  explicit Choices(std::uint64_t seed) : state_(mixed_bits(seed)) {}
  explicit Choices(std::span<const std::uint8_t> bytes) : bytes_(bytes), has_bytes_(true) {}

  /// A number in [0, n); after the last byte 0. One byte is read for up to 256 values, else two.
  std::size_t below(std::size_t n) {
    MW_CHECK(n > 0);
    if (!has_bytes_) return mixed_bits(state_++) % n;
    std::size_t value = next_byte();
    if (n > 256) value = value << 8 | next_byte();
    return value % n;
  }
  bool one_in(std::size_t n) { return below(n) == n - 1; }
  int between(int least, int most) {
    return least + static_cast<int>(below(static_cast<std::size_t>(most - least) + 1));
  }
  template <class Value>
  Value one_of(std::initializer_list<Value> values) {
    return values.begin()[below(values.size())];
  }
  template <class Value>
  const Value& one_of(std::span<const Value> values) {
    return values[below(values.size())];
  }
  template <class Value>
  const Value& one_of(const std::vector<Value>& values) {
    return values[below(values.size())];
  }
  /// Every byte was read; false with a seed.
  bool are_used_up() const { return has_bytes_ && bytes_.empty(); }

 private:
  std::size_t next_byte() {
    if (bytes_.empty()) return 0;
    const std::size_t byte = bytes_.front();
    bytes_ = bytes_.subspan(1);
    return byte;
  }

  std::uint64_t state_ = 0;
  std::span<const std::uint8_t> bytes_;
  bool has_bytes_ = false;
};

}  // namespace meshwright
