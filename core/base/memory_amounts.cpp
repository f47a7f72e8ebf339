#include "core/base/memory_amounts.hpp"

namespace meshwright {

std::string_view name_of(MemoryClass memory_class) {
  constexpr std::array<std::string_view, kMemoryClassCount> kNames{
      "weights", "gradients", "optimizer",     "activations",
      "working", "logits",    "communication", "reserved"};
  return kNames[static_cast<std::size_t>(memory_class)];
}

}  // namespace meshwright
