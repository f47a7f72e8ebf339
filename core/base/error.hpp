/// The four kinds of failure (never mixed):
///   1. invalid input        → InputError, a list of Diagnostics; exit code 3 (2 for flags)
///   2. a legitimate "no"    → part of a return type, with reasons; exit code 1
///   3. a bug of ours        → MW_CHECK → InternalError; exit code 5
///   4. a system error       → RuntimeFailure (device, network, disk); exit code 4
#pragma once

#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace meshwright {

/// One problem that the user can fix. `where` is file:line:column, file#/json/pointer, or a flag;
/// `what` is lower case without a full stop and contains the value; `hint` starts with a verb.
struct Diagnostic {
  std::string where;
  std::string what;
  std::string hint;  ///< may be empty
  friend bool operator==(const Diagnostic&, const Diagnostic&) = default;
};

/// Readers and checks stop after this many problems.
inline constexpr std::size_t kProblemsWorthShowing = 20;

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

/// InputError if there are problems.
void throw_if_any(const std::vector<Diagnostic>& problems);

/// A system error: a file cannot be written, a device is missing.
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

/// "a", "a and b", "a, b and c".
std::string enumeration(std::span<const std::string> words);

/// Up to `count` candidates by case-insensitive edit distance, nearest first; ties keep the given
/// order. Candidates further away than half the length of the longer word are dropped.
std::vector<std::string> nearest_names(std::string_view name,
                                       std::span<const std::string> candidates,
                                       std::size_t count = 3);

/// "did you mean 'a', 'b'?" or, if no candidate is near, "expected one of: a, b, c".
std::string suggest(std::string_view name, std::span<const std::string> candidates);

}  // namespace meshwright
