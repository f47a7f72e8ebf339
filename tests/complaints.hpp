/// Error messages of calls with invalid input.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/base/error.hpp"

namespace meshwright {

/// The problems in the InputError that `call` throws; empty if it throws none.
inline std::vector<Diagnostic> diagnostics_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const InputError& error) {
    return error.diagnostics();
  }
  return {};
}

/// The text of that InputError; "" if none is thrown.
inline std::string complaints_of(const std::function<void()>& call) {
  const std::vector<Diagnostic> found = diagnostics_of(call);
  return found.empty() ? "" : InputError(found).what();
}

}  // namespace meshwright
