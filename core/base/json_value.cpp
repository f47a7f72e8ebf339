#include "core/base/json_value.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_set>

#include "core/base/check.hpp"

namespace meshwright {
namespace {

std::string shortened(std::string text, std::size_t longest = 60) {
  if (text.size() <= longest) return text;
  text.resize(longest);
  return text + "…";
}

std::string line_and_column(std::string_view text, std::size_t position) {
  const std::string_view before = text.substr(0, std::min(position, text.size()));
  const auto lines = std::count(before.begin(), before.end(), '\n');
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  return fmt::format("{}:{}", lines + 1, std::max<std::size_t>(before.size() - line_start, 1));
}

/// Strips the prefix of "[json.exception.parse_error.101] parse error at line 1, column 2: …".
std::string reason_of(std::string message) {
  if (const std::size_t end = message.find("] "); end < 60) message.erase(0, end + 2);
  if (message.starts_with("parse error"))
    if (const std::size_t end = message.find(": "); end < 60) message.erase(0, end + 2);
  return shortened(std::move(message), 200);
}

/// Counts the characters read, to locate problems that are not found by the parser itself.
struct Cursor {
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;
  const char* at;
  std::size_t* count;
  reference operator*() const { return *at; }
  Cursor& operator++() {
    ++at;
    ++*count;
    return *this;
  }
  bool operator==(const Cursor& other) const { return at == other.at; }
  bool operator!=(const Cursor& other) const { return at != other.at; }
};

/// Builds the value from nlohmann's event stream (iterative, so depth costs no stack).
class ValueBuilder : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return add({}); }
  bool boolean(bool value) override { return add({value}); }
  bool number_integer(std::int64_t value) override { return add({value}); }
  bool number_unsigned(std::uint64_t value) override {
    if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      return add({static_cast<double>(value)});
    return add({static_cast<std::int64_t>(value)});
  }
  bool number_float(double value, const std::string&) override { return add({value}); }
  bool string(std::string& value) override { return add({std::move(value)}); }
  bool binary(nlohmann::json::binary_t&) override { return false; }  // not in JSON texts
  bool start_object(std::size_t) override { return open({JsonObject{}}); }
  bool start_array(std::size_t) override { return open({JsonArray{}}); }
  bool end_array() override { return close(); }
  bool end_object() override { return close(); }
  bool key(std::string& key) override {
    if (!open_.back().keys.insert(key).second)
      return fail(fmt::format("duplicate key '{}'", shortened(key)), "remove one of them");
    std::get<JsonObject>(open_.back().value.of).push_back({key, {}});
    return true;
  }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    position_ = position;
    return fail("invalid JSON: " + reason_of(error.what()), "");
  }

  JsonValue take() { return std::move(root_); }
  const std::string& what() const { return what_; }
  const std::string& hint() const { return hint_; }
  std::optional<std::size_t> position() const { return position_; }

 private:
  struct Open {
    JsonValue value;
    std::unordered_set<std::string> keys;  // looked up only, never iterated
  };

  bool fail(std::string what, std::string hint) {
    what_ = std::move(what);
    hint_ = std::move(hint);
    return false;
  }
  bool add(JsonValue value) {
    if (++count_ > kMostJsonValues)
      return fail(fmt::format("more than {} values", kMostJsonValues),
                  "check that this is the right file");
    if (open_.empty())
      root_ = std::move(value);
    else if (auto* array = std::get_if<JsonArray>(&open_.back().value.of))
      array->push_back(std::move(value));
    else
      std::get<JsonObject>(open_.back().value.of).back().value = std::move(value);
    return true;
  }
  bool open(JsonValue value) {
    if (open_.size() >= static_cast<std::size_t>(kDeepestJson))
      return fail(fmt::format("nested deeper than {} levels", kDeepestJson),
                  "check that this is the right file");
    open_.push_back({std::move(value), {}});
    return true;
  }
  bool close() {
    JsonValue value = std::move(open_.back().value);
    open_.pop_back();
    return add(std::move(value));
  }

  JsonValue root_;
  std::vector<Open> open_;
  std::size_t count_ = 0;
  std::string what_, hint_;
  std::optional<std::size_t> position_;
};

}  // namespace

std::string pointer_token(std::string_view key) {
  std::string token;
  for (const char c : key) {
    if (c == '~')
      token += "~0";
    else if (c == '/')
      token += "~1";
    else
      token += c;
  }
  return token;
}

JsonValue parse_json(std::string_view text, std::string_view where) {
  ValueBuilder builder;
  const auto* const begin = text.data();
  std::size_t consumed = 0;
  const Cursor first{begin, &consumed};
  const Cursor last{begin + text.size(), &consumed};
  if (nlohmann::json::sax_parse(first, last, &builder)) return builder.take();
  const std::size_t position = builder.position().value_or(consumed);
  throw InputError(Diagnostic{fmt::format("{}:{}", where, line_and_column(text, position)),
                              builder.what(), builder.hint()});
}

std::string describe(const JsonValue& value) {
  if (const auto* boolean = value.as<bool>()) return *boolean ? "true" : "false";
  if (const auto* integer = value.as<std::int64_t>()) return fmt::format("the number {}", *integer);
  if (const auto* number = value.as<double>()) return fmt::format("the number {}", *number);
  if (const auto* text = value.as<std::string>())
    return fmt::format("the string \"{}\"", shortened(*text));
  if (value.as<JsonArray>()) return "an array";
  if (value.as<JsonObject>()) return "an object";
  return "null";
}

JsonObjectReader::JsonObjectReader(const JsonValue& value, std::string place,
                                   std::vector<Diagnostic>& problems)
    : object_(value.as<JsonObject>()),
      place_(std::move(place)),
      problems_(problems),
      is_object_(object_ != nullptr) {
  static const JsonObject kNoKeys;
  if (is_object_) return;
  problems_.push_back({place_, fmt::format("expected an object, got {}", describe(value)), ""});
  object_ = &kNoKeys;
}

std::string JsonObjectReader::place_of(std::string_view key) const {
  const bool at_root = place_.find('#') == std::string::npos;
  return fmt::format("{}{}/{}", place_, at_root ? "#" : "", shortened(pointer_token(key)));
}

void JsonObjectReader::note(std::string_view key, std::string what, std::string hint) {
  problems_.push_back({place_of(key), std::move(what), std::move(hint)});
}

void JsonObjectReader::note_type(std::string_view key, std::string_view expected,
                                 const JsonValue& got) {
  note(key, fmt::format("expected {}, got {}", expected, describe(got)), "");
}

const JsonValue* JsonObjectReader::optional(std::string_view key) {
  asked_.emplace_back(key);
  const auto member = std::find_if(object_->begin(), object_->end(),
                                   [&](const JsonMember& m) { return m.key == key; });
  return member == object_->end() ? nullptr : &member->value;
}

const JsonValue* JsonObjectReader::required(std::string_view key) {
  const JsonValue* value = optional(key);
  if (!value && is_object_) problems_.push_back({place_, fmt::format("missing key '{}'", key), ""});
  return value;
}

std::string JsonObjectReader::text(std::string_view key) {
  const JsonValue* value = required(key);
  if (!value) return "";
  if (const auto* text = value->as<std::string>()) return *text;
  note_type(key, "a string", *value);
  return "";
}

bool JsonObjectReader::boolean(std::string_view key, bool when_missing) {
  const JsonValue* value = optional(key);
  if (!value) return when_missing;
  if (const auto* boolean = value->as<bool>()) return *boolean;
  note_type(key, "true or false", *value);
  return when_missing;
}

double JsonObjectReader::number(std::string_view key, double least, double most) {
  const JsonValue* value = required(key);
  if (!value) return least;
  double number = 0;
  if (const auto* integer = value->as<std::int64_t>())
    number = static_cast<double>(*integer);
  else if (const auto* real = value->as<double>())
    number = *real;
  else {
    note_type(key, "a number", *value);
    return least;
  }
  if (number >= least && number <= most) return number;
  note(key, fmt::format("{} is out of range: expected {} to {}", number, least, most), "");
  return least;
}

std::int64_t JsonObjectReader::checked(const JsonValue& value, std::string_view key,
                                       std::int64_t least, std::int64_t most) {
  const auto* integer = value.as<std::int64_t>();
  if (!integer) {
    note_type(key, "a whole number", value);
    return least;
  }
  if (*integer >= least && *integer <= most) return *integer;
  note(key, fmt::format("{} is out of range: expected {} to {}", *integer, least, most), "");
  return least;
}

std::int64_t JsonObjectReader::integer(std::string_view key, std::int64_t least,
                                       std::int64_t most) {
  const JsonValue* value = required(key);
  return value ? checked(*value, key, least, most) : least;
}

std::int64_t JsonObjectReader::integer(std::string_view key, std::int64_t least, std::int64_t most,
                                       std::int64_t when_missing) {
  const JsonValue* value = optional(key);
  return value ? checked(*value, key, least, most) : when_missing;
}

std::vector<std::int64_t> JsonObjectReader::integers(std::string_view key, std::int64_t least,
                                                     std::int64_t most, std::size_t longest) {
  std::vector<std::int64_t> numbers;
  const JsonValue* value = required(key);
  if (!value) return numbers;
  const auto* array = value->as<JsonArray>();
  if (!array) {
    note_type(key, "an array of whole numbers", *value);
    return numbers;
  }
  if (array->size() > longest) {
    note(key, fmt::format("expected at most {} numbers, got {}", longest, array->size()), "");
    return numbers;
  }
  for (std::size_t i = 0; i < array->size() && problems_.size() < kProblemsWorthShowing; ++i) {
    const std::size_t before = problems_.size();
    numbers.push_back(checked((*array)[i], key, least, most));
    if (problems_.size() > before) problems_.back().where += fmt::format("/{}", i);
  }
  return numbers;
}

const JsonValue* JsonObjectReader::find(std::string_view key, Presence presence) {
  const JsonValue* value = presence == Presence::kRequired ? required(key) : optional(key);
  return value && value->is_null() && presence == Presence::kOptionalOrNull ? nullptr : value;
}

void JsonObjectReader::object(std::string_view key, Presence presence, const ReadObject& read) {
  const JsonValue* value = find(key, presence);
  if (!value) return;
  JsonObjectReader reader(*value, place_of(key), problems_);
  read(reader);
  reader.finish();
}

void JsonObjectReader::objects(std::string_view key, Presence presence, std::size_t longest,
                               const ReadObject& read) {
  const JsonValue* value = find(key, presence);
  if (!value) return;
  const auto* array = value->as<JsonArray>();
  if (!array) return note_type(key, "an array", *value);
  if (array->size() > longest)
    return note(key, fmt::format("expected at most {} entries, got {}", longest, array->size()),
                "");
  for (std::size_t i = 0; i < array->size(); ++i) {
    JsonObjectReader reader((*array)[i], fmt::format("{}/{}", place_of(key), i), problems_);
    read(reader);
    reader.finish();
  }
}

void JsonObjectReader::finish() {
  for (const JsonMember& member : *object_) {
    if (problems_.size() >= kProblemsWorthShowing) return;
    if (std::find(asked_.begin(), asked_.end(), member.key) == asked_.end())
      problems_.push_back({place_of(member.key),
                           fmt::format("unknown key '{}'", shortened(member.key)),
                           suggest(member.key, asked_)});
  }
}

}  // namespace meshwright
