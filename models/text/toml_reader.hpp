/// Reads one table of a cluster or device file: typed keys. Errors name file:line:column, what was
/// expected and what was found; unknown keys are errors. All errors are collected and reported
/// together.
#pragma once

#include <toml++/toml.h>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/units.hpp"
#include "models/text/named_text.hpp"

namespace meshwright {

/// InputError with file:line:column if the text is not TOML; `noun` is the kind of file expected.
/// Nodes know their file.
toml::table parse_toml(const NamedText& source, std::string_view noun = "cluster");

/// "x.toml:3:10": the file that the node was read from, else `file`.
std::string place_of(const toml::node& node, const std::string& file);

/// Errors and sources collected while a file is read.
struct TomlFindings {
  std::string file;
  std::vector<Diagnostic> complaints;
  std::map<std::string, std::string> sources;  ///< "devices.a100.memory" → source of the value

  std::string where(const toml::node& node) const;  ///< "x.toml:3:10"
};

/// After an error, a harmless value is returned and reading continues.
///
/// A table may name the source of its values: `source = "…"` for all of them, `sources.KEY = "…"`
/// for one. Both are stored in TomlFindings::sources.
class TomlReader {
 public:
  TomlReader(const toml::table& table, std::string path, TomlFindings& findings)
      : table_(table), path_(std::move(path)), findings_(findings) {}

  /// Required quantities with units.
  Bytes bytes(std::string_view key);
  Bytes bytes(std::string_view key, Bytes absent);
  BytesPerSecond bandwidth(std::string_view key);
  Seconds seconds(std::string_view key);
  Seconds seconds(std::string_view key, Seconds absent);
  std::optional<FlopsPerSecond> flop_rate(std::string_view key);
  std::optional<Watts> power(std::string_view key);
  std::optional<DollarsPerHour> price(std::string_view key);

  std::string text(std::string_view key);
  std::string text(std::string_view key, const std::string& absent);
  /// Index in `names`.
  std::size_t choice(std::string_view key, const std::vector<std::string>& names,
                     std::size_t absent);
  /// An array of distinct words of `names`; numbers are words too. nullopt if absent.
  std::optional<std::vector<std::string>> words(std::string_view key,
                                                const std::vector<std::string>& names);
  bool flag(std::string_view key, bool absent);
  int whole_number(std::string_view key, int least, int most, std::optional<int> absent = {});
  /// A number in (0, most].
  double number(std::string_view key, double most, double absent);
  /// A number in [least, most].
  double number(std::string_view key, double least, double most, double absent);

  /// True if `key` is present.
  bool has(std::string_view key);
  /// Calls `read` for the table at `key`; an error if it is required and absent.
  void table(std::string_view key, bool required, const std::function<void(TomlReader&)>& read);
  /// Calls `read` for every table inside the table at `key`, with its name.
  void tables(std::string_view key,
              const std::function<void(const std::string& name, TomlReader&)>& read);
  /// Calls `read` for every element of the array of tables at `key`.
  void array(std::string_view key, const std::function<void(TomlReader&)>& read);

  /// Reads the sources and reports keys that were never asked for.
  void finish();

  void complain(std::string_view key, std::string what, std::string hint);

 private:
  const toml::node* find(std::string_view key);
  const toml::node* find_required(std::string_view key, std::string_view example);
  /// `hint`: for other values.
  const toml::table* find_table(std::string_view key, bool required, const std::string& hint);
  template <class Quantity>
  using Parse = Quantity (*)(std::string_view text, std::string_view where);
  template <class Quantity>
  std::optional<Quantity> quantity(std::string_view key, const toml::node* node,
                                   std::string_view unit, Parse<Quantity> parse);
  template <class IsValid>
  double number_if(IsValid is_valid, std::string_view key, double absent,
                   std::string_view expected);
  std::string invalid_value(std::string_view key, const toml::node& node,
                            std::string_view expected) const;
  void read_sources();
  void complain_about_unknown_keys();
  std::string path_of(std::string_view key) const;

  const toml::table& table_;
  std::string path_;
  TomlFindings& findings_;
  std::vector<std::string> asked_;    ///< known keys of this table
  std::vector<std::string> figures_;  ///< present keys that take a source
};

/// Reads a whole file; `root`: its table. Returns the sources of its values. InputError with all
/// errors.
std::map<std::string, std::string> read_toml(const toml::table& root, const std::string& where,
                                             const std::function<void(TomlReader&)>& read);

}  // namespace meshwright
