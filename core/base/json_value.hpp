/// Strict JSON parsing: a value type without third-party headers, and an object reader that
/// collects all problems of a file before reporting them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/base/error.hpp"

namespace meshwright {

struct JsonMember;
struct JsonValue;
using JsonArray = std::vector<JsonValue>;
using JsonObject = std::vector<JsonMember>;  ///< in file order; keys are unique

struct JsonValue {
  /// Integers outside the range of int64 become doubles.
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

/// Throws InputError with "where:line:column" for syntax errors, duplicate keys, numbers beyond the
/// range of double, nesting deeper than kDeepestJson, and more than kMostJsonValues values. Linear
/// in the text.
JsonValue parse_json(std::string_view text, std::string_view where);

/// A key as a token of a JSON pointer (RFC 6901).
std::string pointer_token(std::string_view key);

/// For error messages: "null", "true", "the number 3", "the string \"abc\"", "an array", "an
/// object".
std::string describe(const JsonValue& value);

/// Reads one object key by key. A problem is recorded as "file#/json/pointer: expected …, got …"
/// and a valid placeholder is returned, so that one pass finds all problems; the caller throws
/// InputError(problems) if there are any. finish() reports the keys that were never asked for.
class JsonObjectReader {
 public:
  /// If `value` is not an object, records a problem and acts as an empty object. `place` is its
  /// location "file#/pointer". `value` and `problems` must outlive the reader.
  JsonObjectReader(const JsonValue& value, std::string place, std::vector<Diagnostic>& problems);

  /// Returns null and records a problem if the key is missing.
  const JsonValue* required(std::string_view key);
  /// Returns null if the key is missing.
  const JsonValue* optional(std::string_view key);

  std::string text(std::string_view key);
  bool boolean(std::string_view key, bool when_missing);
  double number(std::string_view key, double least, double most);
  std::int64_t integer(std::string_view key, std::int64_t least, std::int64_t most);
  std::int64_t integer(std::string_view key, std::int64_t least, std::int64_t most,
                       std::int64_t when_missing);
  /// An array of at most `longest` integers in [least, most].
  std::vector<std::int64_t> integers(std::string_view key, std::int64_t least, std::int64_t most,
                                     std::size_t longest);

  enum class Presence : std::uint8_t { kRequired, kOptional, kOptionalOrNull };
  using ReadObject = std::function<void(JsonObjectReader&)>;
  /// Calls `read`, and then finish(), for the object at `key` if it is present.
  void object(std::string_view key, Presence presence, const ReadObject& read);
  /// Likewise for the objects of an array of at most `longest`.
  void objects(std::string_view key, Presence presence, std::size_t longest,
               const ReadObject& read);

  std::string place_of(std::string_view key) const;
  void note(std::string_view key, std::string what, std::string hint);
  /// Records every key that was not asked for, with the nearest known key.
  void finish();

 private:
  const JsonValue* find(std::string_view key, Presence presence);
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
