/// Pseudorandom numbers of the sharding search.
#pragma once

#include <cstdint>

#include "core/base/random.hpp"

namespace meshwright {

/// A sequence of pseudorandom numbers.
class Chance {
 public:
  explicit Chance(std::uint64_t seed) : state_(mixed_bits(seed)) {}
  std::uint64_t next() { return mixed_bits(state_++); }

 private:
  std::uint64_t state_;
};

}  // namespace meshwright
