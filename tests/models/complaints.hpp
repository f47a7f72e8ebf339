/// Error messages of calls with invalid input.
#pragma once

#include <functional>
#include <string>

#include "core/base/error.hpp"

namespace meshwright {

/// The text of the InputError that `call` throws; "" if it throws none.
inline std::string complaints_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace meshwright
