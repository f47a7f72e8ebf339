/// Reads one table of a cluster file: typed keys, every complaint with file:line:column, what was
/// expected and what was found, and no key left unread. Complaints are collected.
#pragma once

#include <toml++/toml.h>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "core/units.hpp"
#include "models/load.hpp"

namespace meshwright {

/// InputError with file:line:column if the text is not TOML.
toml::table parse_toml(const NamedText& source);

/// What reading one file gathers beside its values.
struct TomlFindings {
  std::string file;
  std::vector<Diagnostic> complaints;
  std::map<std::string, std::string> sources;  ///< "devices.a100.memory" → where it is from

  std::string where(const toml::node& node) const;  ///< "x.toml:3:10"
};

/// After a complaint a harmless value is returned and reading goes on.
///
/// A table may say where its figures are from: `source = "…"` for all of them, `sources.KEY = "…"`
/// for one. Both end in TomlFindings::sources.
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

  std::string text(std::string_view key);
  std::string text(std::string_view key, const std::string& absent);
  /// Index in `names`.
  std::size_t choice(std::string_view key, const std::vector<std::string>& names,
                     std::size_t absent);
  bool flag(std::string_view key, bool absent);
  int whole_number(std::string_view key, int least, int most, std::optional<int> absent = {});
  /// A number in (0, most].
  double number(std::string_view key, double most, double absent);

  /// True if something stands at `key`.
  bool has(std::string_view key);
  /// Calls `read` for the table at `key`; a complaint if it is required and absent.
  void table(std::string_view key, bool required, const std::function<void(TomlReader&)>& read);
  /// Calls `read` for every table inside the table at `key`, with its name.
  void tables(std::string_view key,
              const std::function<void(const std::string& name, TomlReader&)>& read);
  /// Calls `read` for every element of the array of tables at `key`.
  void array(std::string_view key, const std::function<void(TomlReader&)>& read);

  /// Reads the sources and complains about keys that nobody asked for.
  void finish();

  void complain(std::string_view key, std::string what, std::string hint);

 private:
  const toml::node* find(std::string_view key);
  const toml::node* find_required(std::string_view key, std::string_view example);
  const std::string* quantity_text(std::string_view key, const toml::node& node,
                                   std::string_view units);
  void read_sources();
  void complain_about_unknown_keys();
  std::string path_of(std::string_view key) const;

  const toml::table& table_;
  std::string path_;
  TomlFindings& findings_;
  std::vector<std::string> asked_;    ///< keys that may stand here
  std::vector<std::string> figures_;  ///< of those, present ones that a source belongs to
};

}  // namespace meshwright
