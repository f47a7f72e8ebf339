#include "core/base/json_scanner.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "core/base/error.hpp"

namespace meshwright {

void JsonScanner::fail(std::string_view what) const {
  throw InputError(Diagnostic{fmt::format("{}: byte {}", where_, at_),
                              fmt::format("invalid JSON: {}", what),
                              "check whether the file is complete"});
}

char JsonScanner::take() {
  skip_blanks();
  if (at_ >= text_.size()) fail("unexpected end of input");
  return text_[at_++];
}

JsonScanner::Kind JsonScanner::next() {
  skip_blanks();
  if (at_ >= text_.size()) return Kind::kEnd;
  switch (text_[at_]) {
    case '{':
      return Kind::kObject;
    case '[':
      return Kind::kArray;
    case '"':
      return Kind::kText;
    case 't':
    case 'f':
    case 'n':
      return Kind::kWord;
    default:
      if (text_[at_] != '-' && (text_[at_] < '0' || text_[at_] > '9'))
        fail(fmt::format("unexpected character '{}'", text_[at_]));
      return Kind::kNumber;
  }
}

bool JsonScanner::enter(char open, char close, const char* expected) {
  if (take() != open) fail(expected);
  if (++depth_ > kDeepest) fail(fmt::format("nested deeper than {} levels", kDeepest));
  skip_blanks();
  if (at_ >= text_.size() || text_[at_] != close) return true;
  ++at_;
  --depth_;
  return false;
}

bool JsonScanner::enter_object() {
  if (!enter('{', '}', "expected an object")) return false;
  read_key();
  return true;
}

bool JsonScanner::close_or_comma(char close) {
  const char c = take();
  if (c == close) {
    --depth_;
    return false;
  }
  if (c != ',') fail(fmt::format("expected ',' or '{}'", close));
  return true;
}

bool JsonScanner::next_member() {
  if (!close_or_comma('}')) return false;
  read_key();
  return true;
}

void JsonScanner::read_key() {
  skip_blanks();
  key_ = read_text(key_buffer_);
  if (take() != ':') fail("expected ':'");
}

bool JsonScanner::enter_array() { return enter('[', ']', "expected an array"); }
bool JsonScanner::next_element() { return close_or_comma(']'); }

std::string_view JsonScanner::text() {
  skip_blanks();
  return read_text(text_buffer_);
}

std::string_view JsonScanner::read_text(std::string& unescaped) {
  if (at_ >= text_.size() || text_[at_] != '"') fail("expected a string");
  const std::size_t begin = ++at_;
  while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\\') ++at_;
  if (at_ >= text_.size()) fail("unterminated string");
  if (text_[at_] == '"') return text_.substr(begin, at_++ - begin);
  unescaped.assign(text_.substr(begin, at_ - begin));
  while (at_ < text_.size() && text_[at_] != '"') {
    if (text_[at_] != '\\') {
      unescaped += text_[at_++];
      continue;
    }
    ++at_;
    read_escape(unescaped);
  }
  if (at_ >= text_.size()) fail("unterminated string");
  ++at_;
  return unescaped;
}

namespace {

void append_utf8(std::string& out, std::uint32_t code) {
  const auto add = [&](std::uint32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) {
    add(code);
  } else if (code < 0x800) {
    add(0xc0 | code >> 6);
    add(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    add(0xe0 | code >> 12);
    add(0x80 | (code >> 6 & 0x3f));
    add(0x80 | (code & 0x3f));
  } else {
    add(0xf0 | code >> 18);
    add(0x80 | (code >> 12 & 0x3f));
    add(0x80 | (code >> 6 & 0x3f));
    add(0x80 | (code & 0x3f));
  }
}

}  // namespace

std::uint32_t JsonScanner::read_hex() {
  if (at_ + 4 > text_.size()) fail("unterminated string");
  std::uint32_t code = 0;
  const auto end = text_.data() + at_ + 4;
  if (std::from_chars(text_.data() + at_, end, code, 16).ptr != end)
    fail("expected four hexadecimal digits after '\\u'");
  at_ += 4;
  return code;
}

void JsonScanner::read_escape(std::string& out) {
  if (at_ >= text_.size()) fail("unterminated string");
  const char c = text_[at_++];
  switch (c) {
    case 'n':
      out += '\n';
      return;
    case 't':
      out += '\t';
      return;
    case 'r':
      out += '\r';
      return;
    case 'b':
      out += '\b';
      return;
    case 'f':
      out += '\f';
      return;
    case 'u': {
      constexpr std::uint32_t kUnknown = 0xfffd;
      std::uint32_t code = read_hex();
      const bool leads = code >= 0xd800 && code < 0xdc00;
      if (leads && text_.substr(at_, 2) == "\\u") {
        at_ += 2;
        const std::uint32_t low = read_hex();
        code = low >= 0xdc00 && low < 0xe000 ? 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00)
                                             : kUnknown;
      } else if (code >= 0xd800 && code < 0xe000) {
        code = kUnknown;
      }
      append_utf8(out, code);
      return;
    }
    default:
      if (c != '"' && c != '\\' && c != '/') fail(fmt::format("invalid escape '\\{}'", c));
      out += c;
  }
}

std::string_view JsonScanner::number() {
  if (next() != Kind::kNumber) fail("expected a number");
  const std::size_t begin = at_;
  while (at_ < text_.size()) {
    const char c = text_[at_];
    const bool part =
        (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E';
    if (!part) break;
    ++at_;
  }
  return text_.substr(begin, at_ - begin);
}

void JsonScanner::skip_text() {
  ++at_;
  while (at_ < text_.size() && text_[at_] != '"') at_ += text_[at_] == '\\' ? 2 : 1;
  if (at_ >= text_.size()) fail("unterminated string");
  ++at_;
}

void JsonScanner::skip() {
  switch (next()) {
    case Kind::kObject:
    case Kind::kArray: {
      // Brackets are counted, not matched: skipped values only need to end.
      int open = 0;
      do {
        if (at_ >= text_.size()) fail("unexpected end of input");
        const char c = text_[at_];
        if (c == '"') {
          skip_text();
          continue;
        }
        if (c == '{' || c == '[') ++open;
        if (c == '}' || c == ']') --open;
        ++at_;
      } while (open > 0);
      return;
    }
    case Kind::kText:
      skip_text();
      return;
    case Kind::kNumber:
      number();
      return;
    case Kind::kWord:
      for (const std::string_view word : {"true", "false", "null"})
        if (text_.substr(at_, word.size()) == word) {
          at_ += word.size();
          return;
        }
      fail("expected true, false or null");
    case Kind::kEnd:
      fail("unexpected end of input");
  }
}

void JsonScanner::expect_end() {
  skip_blanks();
  if (at_ != text_.size()) fail("unexpected data after the end");
}

bool microseconds_to_nanoseconds(std::string_view number, std::int64_t& nanoseconds) {
  constexpr std::int64_t kLargest = std::int64_t{4} * 1'000'000'000'000'000;  // 126 years
  std::int64_t whole = 0;
  const char* const end = number.data() + number.size();
  auto [at, error] = std::from_chars(number.data(), end, whole);
  if (error != std::errc() || whole > kLargest || whole < -kLargest) return false;
  std::int64_t rest = 0;
  if (at != end && *at == '.') {
    std::int64_t unit = 100;
    for (++at; at != end && *at >= '0' && *at <= '9'; ++at, unit /= 10) rest += (*at - '0') * unit;
  }
  if (at != end) {
    double value = 0;
    const auto result = std::from_chars(number.data(), end, value);
    if (result.ec != std::errc() || result.ptr != end || !(std::abs(value) < 4e15)) return false;
    nanoseconds = static_cast<std::int64_t>(std::floor(value * 1000));
    return true;
  }
  nanoseconds = whole * 1000 + (number.front() == '-' ? -rest : rest);
  return true;
}

}  // namespace meshwright
