/// Single-pass JSON reader that builds no values, for traces of hundreds of megabytes. The caller
/// asks for what it expects and skips the rest. Use parse_json() for small files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace meshwright {

class JsonScanner {
 public:
  /// `where` is the file name for error messages. Both views must outlive the scanner.
  JsonScanner(std::string_view text, std::string_view where) : text_(text), where_(where) {}

  enum class Kind : std::uint8_t { kObject, kArray, kText, kNumber, kWord, kEnd };
  /// The kind of the next value; kWord is true, false or null.
  Kind next();

  /// for (bool more = scanner.enter_object(); more; more = scanner.next_member()) { scanner.key();
  /// … } The loop body must read or skip the member's value.
  bool enter_object();
  bool next_member();
  std::string_view key() const { return key_; }
  /// Calls read(key) for each member of an object; it must read or skip the value.
  template <class Read>
  void for_each_member(const Read& read) {
    for (bool more = enter_object(); more; more = next_member()) read(key_);
  }
  /// The same for arrays: the loop body must read or skip the element.
  bool enter_array();
  bool next_element();
  /// Calls read() at the start of each object of an array; returns the number of other elements,
  /// which are skipped.
  template <class Read>
  std::size_t for_each_object(const Read& read) {
    std::size_t others = 0;
    for (bool more = enter_array(); more; more = next_element()) {
      if (next() == Kind::kObject) {
        read();
      } else {
        skip();
        ++others;
      }
    }
    return others;
  }

  /// A view into the input if the string has no escapes; otherwise valid until the next call of
  /// text() or the next member.
  std::string_view text();
  /// The number as written: "-12.5e3".
  std::string_view number();
  void skip();

  std::size_t position() const { return at_; }
  /// Throws InputError "invalid JSON: …" with the byte offset.
  [[noreturn]] void fail(std::string_view what) const;
  /// Fails unless only whitespace follows.
  void expect_end();

 private:
  static constexpr int kDeepest = 256;
  void skip_blanks() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t'))
      ++at_;
  }
  char take();
  bool close_or_comma(char close);
  void read_key();
  std::string_view read_text(std::string& unescaped);
  void read_escape(std::string& out);
  std::uint32_t read_hex();
  void skip_text();
  /// False if it is empty.
  bool enter(char open, char close, const char* expected);

  std::string_view text_, where_, key_;
  std::size_t at_ = 0;
  int depth_ = 0;
  std::string key_buffer_, text_buffer_;
};

/// Converts "12.345" microseconds to nanoseconds: exact for up to three decimals, rounded down
/// beyond; exponents are accepted. Returns false if the text is not a number or exceeds 126 years.
bool microseconds_to_nanoseconds(std::string_view number, std::int64_t& nanoseconds);

}  // namespace meshwright
