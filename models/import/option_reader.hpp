/// Options of a command line by name. Errors are collected; options that were never asked for are
/// listed.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.hpp"
#include "models/import/shell_script.hpp"

namespace meshwright {

class OptionReader {
 public:
  /// Words from the first "--name" on. A later option replaces an earlier one.
  OptionReader(std::span<const ShellWord> words, std::string file);

  bool has(std::string_view name);
  /// A whole number from `least` to `most`; the absent value if the option is not given.
  std::int64_t count(std::string_view name, std::int64_t absent, std::int64_t least = 1,
                     std::int64_t most = std::int64_t{1} << 31);
  std::optional<std::int64_t> optional_count(std::string_view name);
  std::int64_t required_count(std::string_view name);
  double number(std::string_view name, double absent);
  std::string text(std::string_view name, const std::string& absent = {});
  std::vector<std::string> list(std::string_view name);
  /// Index in `words`.
  std::size_t choice(std::string_view name, const std::vector<std::string>& words,
                     std::size_t absent);

  void complain(std::string_view name, std::string what, std::string hint);
  void throw_complaints() const { throw_if_any(std::vector<Diagnostic>(complaints_)); }
  bool is_clean() const { return complaints_.empty(); }
  /// Names that were never asked for, in the order of the command line.
  std::vector<std::string> unused() const;

 private:
  struct Option {
    std::vector<std::string> values;
    int line = 1;
  };
  const Option* find(std::string_view name);
  std::string where(std::string_view name) const;

  std::string file_;
  std::vector<std::string> order_;
  std::map<std::string, Option, std::less<>> options_;
  std::set<std::string, std::less<>> asked_;
  std::vector<Diagnostic> complaints_;
};

}  // namespace meshwright
