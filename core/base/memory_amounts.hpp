/// Device memory by class of use.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "core/base/units.hpp"

namespace meshwright {

enum class MemoryClass : std::uint8_t {
  kWeights,
  kGradients,
  kOptimizer,      ///< fp32 master weights and both moments of AdamW
  kActivations,    ///< saved activations, from forward to backward
  kWorking,        ///< temporary within a task: recomputed activations, activation gradients
  kLogits,         ///< output of the head and its gradient
  kCommunication,  ///< send, receive and gather buffers
  kReserved        ///< driver context, communication library, allocator slack
};
inline constexpr int kMemoryClassCount = 8;
std::string_view name_of(MemoryClass memory_class);

struct MemoryAmounts {
  std::array<Bytes, kMemoryClassCount> by_class{};
  constexpr Bytes& operator[](MemoryClass c) { return by_class[static_cast<std::size_t>(c)]; }
  constexpr Bytes operator[](MemoryClass c) const { return by_class[static_cast<std::size_t>(c)]; }
  friend bool operator==(const MemoryAmounts&, const MemoryAmounts&) = default;
};
constexpr MemoryAmounts& operator+=(MemoryAmounts& a, const MemoryAmounts& b) {
  for (std::size_t i = 0; i < a.by_class.size(); ++i) a.by_class[i] += b.by_class[i];
  return a;
}
constexpr MemoryAmounts& operator-=(MemoryAmounts& a, const MemoryAmounts& b) {
  for (std::size_t i = 0; i < a.by_class.size(); ++i) a.by_class[i] -= b.by_class[i];
  return a;
}
constexpr Bytes total(const MemoryAmounts& amounts) {
  Bytes sum;
  for (const Bytes bytes : amounts.by_class) sum += bytes;
  return sum;
}

/// Tensors: everything but kReserved.
constexpr Bytes allocated_bytes(const MemoryAmounts& amounts) {
  return total(amounts) - amounts[MemoryClass::kReserved];
}
}  // namespace meshwright
