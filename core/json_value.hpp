/// Strict reading of JSON files: a value type without third-party headers, and a reader of objects
/// that collects everything that is wrong with its file before it reports.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/error.hpp"

namespace meshwright {

struct JsonMember;
struct JsonValue;
using JsonArray = std::vector<JsonValue>;
using JsonObject = std::vector<JsonMember>;  ///< in the order of the file; keys are unique

struct JsonValue {
  /// Integers that leave int64 become doubles.
  std::variant<std::monostate, bool, std::int64_t, double, std::string, JsonArray, JsonObject> of;

  bool is_null() const { return std::holds_alternative<std::monostate>(of); }
  template <class T>
  const T* as() const {
    return std::get_if<T>(&of);
  }
};
struct JsonMember {
  std::string key;
  JsonValue value;
};

inline constexpr int kDeepestJson = 64;
inline constexpr std::size_t kMostJsonValues = 2'000'000;

/// Throws InputError with "where:line:column": syntax, duplicate keys, numbers no double can hold,
/// deeper than kDeepestJson, more values than kMostJsonValues. Linear in the text.
JsonValue parse_json(std::string_view text, std::string_view where);

/// "null", "a boolean", "the number 3", "the text \"abc\"", "an array", "an object".
std::string describe(const JsonValue& value);

/// Reads one object key by key. A problem is noted as "file#/json/pointer: expected …, got …" and a
/// harmless value is returned in its place, so that one pass finds all problems; the caller throws
/// InputError(problems) when there are any. Keys that were never asked for are unknown: finish().
class JsonObjectReader {
 public:
  /// Notes a problem, and then holds no keys, if `value` is not an object. `place` is
  /// "file#/pointer" of it. `value` and `problems` must outlive the reader.
  JsonObjectReader(const JsonValue& value, std::string place, std::vector<Diagnostic>& problems);

  /// Null with a problem noted when the key is missing.
  const JsonValue* required(std::string_view key);
  /// Null when the key is missing.
  const JsonValue* optional(std::string_view key);

  std::string text(std::string_view key);
  bool boolean(std::string_view key, bool when_missing);
  double number(std::string_view key, double least, double most);
  std::int64_t integer(std::string_view key, std::int64_t least, std::int64_t most);
  std::int64_t integer(std::string_view key, std::int64_t least, std::int64_t most,
                       std::int64_t when_missing);
  /// Array of integers in [least, most], at most `longest` of them.
  std::vector<std::int64_t> integers(std::string_view key, std::int64_t least, std::int64_t most,
                                     std::size_t longest);

  std::string place_of(std::string_view key) const;
  void note(std::string_view key, std::string what, std::string hint);
  /// Notes every key that was not asked for, with the nearest one that was.
  void finish();

 private:
  void note_type(std::string_view key, std::string_view expected, const JsonValue& got);
  std::int64_t checked(const JsonValue& value, std::string_view key, std::int64_t least,
                       std::int64_t most);

  const JsonObject* object_;
  std::string place_;
  std::vector<Diagnostic>& problems_;
  std::vector<std::string> asked_;
  bool is_object_;
};

}  // namespace meshwright
