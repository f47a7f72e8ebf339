/// The four kinds of error (never mixed):
///   1. wrong input          → InputError, a list of Diagnostics; exit code 3 (2 for flags)
///   2. a legitimate "no"    → part of a return type, with reasons; exit code 1
///   3. our bug              → MW_CHECK → InternalError; exit code 5
///   4. the world failed     → RuntimeFailure (device, network, disk); exit code 4
#pragma once

#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace meshwright {

/// One thing the user can fix. `where` is file:line:column, file#/json/pointer, or a flag's name;
/// `what` is lower-case, without full stop, and holds the values; `hint` can be acted on.
struct Diagnostic {
  std::string where;
  std::string what;
  std::string hint;  ///< may be empty
  friend bool operator==(const Diagnostic&, const Diagnostic&) = default;
};

/// "error: WHERE: WHAT\n  hint: HINT\n"
std::string format(const Diagnostic& diagnostic);

class InputError : public std::runtime_error {
 public:
  explicit InputError(std::vector<Diagnostic> diagnostics);
  explicit InputError(Diagnostic diagnostic);
  const std::vector<Diagnostic>& diagnostics() const { return diagnostics_; }

 private:
  std::vector<Diagnostic> diagnostics_;
};

/// The environment failed: a file cannot be written, a device is missing.
class RuntimeFailure : public std::runtime_error {
 public:
  explicit RuntimeFailure(Diagnostic diagnostic);
  const Diagnostic& diagnostic() const { return diagnostic_; }

 private:
  Diagnostic diagnostic_;
};

class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// Up to `count` candidates by edit distance (case-insensitive), nearest first, ties in the order
/// given; candidates further away than half the length of the longer word are left out.
std::vector<std::string> nearest_names(std::string_view name,
                                       std::span<const std::string> candidates,
                                       std::size_t count = 3);

/// "did you mean 'a', 'b'?" or, when nothing is near, "known: a, b, c".
std::string suggest(std::string_view name, std::span<const std::string> candidates);

}  // namespace meshwright
