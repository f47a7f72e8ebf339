/// Guarantee of every reader for any bytes: rejected with InputError, or `check` holds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/base/check.hpp"
#include "core/base/error.hpp"

namespace meshwright {

/// Result of LLVMFuzzerTestOneInput. `check` reads the bytes, as text.
template <class Check>
int fuzz_reader(const std::uint8_t* data, std::size_t size, Check check) {
  try {
    check(std::string_view(reinterpret_cast<const char*>(data), size));
  } catch (const InputError&) {
  }
  return 0;
}

}  // namespace meshwright
