/// Assertions for internal invariants, enabled in release builds too. Never use them for user input
/// (throw InputError instead, core/base/error.hpp).
#pragma once

namespace meshwright {
/// Throws InternalError; main() turns it into exit code 5.
[[noreturn]] void report_broken_invariant(const char* condition, const char* file, int line);
}  // namespace meshwright

#define MW_CHECK(condition)     \
  (static_cast<bool>(condition) \
       ? static_cast<void>(0)   \
       : ::meshwright::report_broken_invariant(#condition, __FILE__, __LINE__))
