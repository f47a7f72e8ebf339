/// Reads JSON in one pass without building values: for traces of hundreds of megabytes. The caller
/// asks for what it expects and skips the rest; for small files parse_json() is more comfortable.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace meshwright {

class JsonScanner {
 public:
  /// `where` names the file in messages. Both must outlive the scanner.
  JsonScanner(std::string_view text, std::string_view where) : text_(text), where_(where) {}

  enum class Kind : std::uint8_t { kObject, kArray, kText, kNumber, kWord, kEnd };
  /// What stands next; kWord is true, false or null.
  Kind next();

  /// for (bool more = scanner.enter_object(); more; more = scanner.next_member()) { scanner.key();
  /// … } Between, the member's value must be read or skipped.
  bool enter_object();
  bool next_member();
  std::string_view key() const { return key_; }
  /// The same for arrays: the element must be read or skipped.
  bool enter_array();
  bool next_element();

  /// Without escapes the view is into the input; else it holds until the next text() or member.
  std::string_view text();
  /// As written: "-12.5e3".
  std::string_view number();
  void skip();

  std::size_t position() const { return at_; }
  /// Throws InputError with the byte: "is no sound JSON: …".
  [[noreturn]] void fail(std::string_view what) const;
  /// After the value of the file only blanks may follow.
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
  void enter();

  std::string_view text_, where_, key_;
  std::size_t at_ = 0;
  int depth_ = 0;
  std::string key_buffer_, text_buffer_;
};

/// "12.345" in millionths of a second → nanoseconds, exact for up to three decimals, rounded down
/// beyond; exponents are taken too. False if it is no
/// number or beyond 126 years.
bool microseconds_to_nanoseconds(std::string_view number, std::int64_t& nanoseconds);

}  // namespace meshwright
