#pragma once

#include <string>
#include <utility>

#include "core/base/error.hpp"

namespace meshwright {

/// The command line itself cannot be parsed: exit code 2; any other wrong input is 3.
class UsageError : public InputError {
 public:
  using InputError::InputError;
};

/// Throws UsageError.
[[noreturn]] inline void refuse_flag(const std::string& flag, std::string what, std::string hint) {
  throw UsageError({.where = flag, .what = std::move(what), .hint = std::move(hint)});
}

}  // namespace meshwright
