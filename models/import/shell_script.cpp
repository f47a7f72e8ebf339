#include "models/import/shell_script.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "models/import/import_lines.hpp"
#include "models/import/shell_arithmetic.hpp"

namespace meshwright {
namespace {

constexpr std::size_t kLongestShellValue = 1 << 16, kMostShellWords = 100'000;
constexpr std::size_t kMostShellCharacters = 1 << 24;  ///< of all words together, expanded
constexpr int kDeepestShellExpansion = 16;

bool starts_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool continues_name(char c) { return starts_name(c) || (c >= '0' && c <= '9'); }
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

/// Words that may precede an assignment.
bool is_declaration(std::string_view word) {
  return word == "export" || word == "declare" || word == "local" || word == "readonly";
}

class ShellReader {
 public:
  explicit ShellReader(const NamedText& source) : source_(source), text_(source.text) {}

  ShellScript read() {
    while (at_ < text_.size()) read_command();
    return std::move(script_);
  }

 private:
  // ---- characters ----
  bool ends() const { return at_ >= text_.size(); }
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  char take() {
    if (text_[at_] == '\n') ++line_;
    return text_[at_++];
  }
  bool skip_continuation() {
    const bool is_crlf = peek() == '\\' && peek(1) == '\r' && peek(2) == '\n';
    if (!is_crlf && !(peek() == '\\' && peek(1) == '\n')) return false;
    at_ += is_crlf ? 3 : 2;
    ++line_;
    return true;
  }
  void skip_blanks() {
    while (!ends() && (is_blank(peek()) || (peek() == '\\' && skip_continuation())))
      if (!ends() && is_blank(peek())) take();
  }

  // ---- commands ----
  void read_command() {
    std::vector<ShellWord> words;
    bool may_assign = true;
    while (true) {
      skip_blanks();
      if (ends()) break;
      const char c = peek();
      if (c == '#') {
        while (!ends() && peek() != '\n') take();
        continue;
      }
      if (std::string_view("\n;|&()").find(c) != std::string_view::npos) {
        take();
        break;
      }
      if (c == '<' || c == '>') {
        skip_redirection();
        continue;
      }
      if (may_assign && read_assignment()) continue;
      std::vector<std::string> fields = read_word();
      const bool is_redirected = peek() == '<' || peek() == '>';
      if (is_redirected && fields.size() == 1 && whole_number(fields.front())) continue;  // 2>&1
      for (std::string& field : fields) {
        may_assign = may_assign && is_declaration(field);
        words.push_back({std::move(field), line_});
      }
      if ((word_count_ += fields.size()) > kMostShellWords) refuse_words();
    }
    if (!words.empty()) script_.commands.push_back(std::move(words));
  }

  void skip_redirection() {
    while (peek() == '<' || peek() == '>' || peek() == '&') take();
    skip_blanks();
    read_word();
  }

  /// NAME=value, NAME+=value, NAME=( … ).
  bool read_assignment() {
    std::size_t end = at_;
    if (end >= text_.size() || !starts_name(text_[end])) return false;
    while (end < text_.size() && continues_name(text_[end])) ++end;
    const std::string name(text_.substr(at_, end - at_));
    const bool appends = text_.substr(end, 2) == "+=";
    if (!appends && text_.substr(end, 1) != "=") return false;
    at_ = end + (appends ? 2 : 1);
    std::vector<std::string> values;
    if (peek() == '(') {
      take();
      values = read_array();
    } else {
      values = {joined(read_word())};
    }
    store(name, std::move(values), appends);
    return true;
  }

  std::vector<std::string> read_array() {
    std::vector<std::string> values;
    const int first = line_;
    while (true) {
      while (!ends() && (is_blank(peek()) || peek() == '\n' || skip_continuation()))
        if (!ends() && peek() != '\\') take();
      if (ends()) refuse(source_, first, "array without ')'", "add the closing parenthesis");
      if (peek() == ')') break;
      if (peek() == '#') {
        while (!ends() && peek() != '\n') take();
        continue;
      }
      const std::size_t before = at_;
      for (std::string& field : read_word()) values.push_back(std::move(field));
      if (at_ == before) take();  // an operator, which no array has
      if (values.size() > kMostShellWords) refuse_words();
    }
    take();
    return values;
  }

  void store(const std::string& name, std::vector<std::string> values, bool appends) {
    std::vector<std::string>& stored = script_.variables[name];
    if (!appends) {
      stored = std::move(values);
    } else if (values.size() == 1 && stored.size() == 1) {
      stored.front() += values.front();
    } else {
      stored.insert(stored.end(), values.begin(), values.end());
    }
    std::size_t length = 0;
    for (const std::string& value : stored) length += value.size() + 1;
    if (length > kLongestShellValue)
      refuse(source_, line_,
             fmt::format("value of '{}' has more than {} characters", name, kLongestShellValue),
             "check that this is a launch script");
  }

  // ---- words ----
  static std::string joined(const std::vector<std::string>& fields) {
    return fmt::format("{}", fmt::join(fields, " "));
  }

  /// One word in the script; several if unquoted variables have several.
  std::vector<std::string> read_word() {
    fields_.clear();
    field_.clear();
    has_field_ = false;
    while (!ends()) {
      const char c = peek();
      if (skip_continuation()) continue;
      if (is_blank(c) || std::string_view("\n;|&()<>").find(c) != std::string_view::npos) break;
      if (c == '\'') {
        read_quoted();
      } else if (c == '"') {
        read_double_quoted();
      } else if (c == '$') {
        add_split(read_expansion(0));
      } else if (c == '\\' && at_ + 1 < text_.size()) {
        take();
        add(std::string(1, take()));
      } else {
        add(std::string(1, take()));
      }
    }
    if (has_field_) fields_.push_back(field_);
    return std::move(fields_);
  }

  void add(const std::string& text) {
    field_ += text;
    has_field_ = true;
    if ((character_count_ += text.size()) > kMostShellCharacters)
      refuse(source_, line_,
             fmt::format("the variables expand to more than {} characters", kMostShellCharacters),
             "check that this is a launch script");
    if (field_.size() > kLongestShellValue)
      refuse(source_, line_, fmt::format("word of more than {} characters", kLongestShellValue),
             "");
  }
  [[noreturn]] void refuse_words() const {
    refuse(source_, line_, fmt::format("more than {} words", kMostShellWords),
           "check that this is a launch script");
  }
  void end_field() {
    if (has_field_) fields_.push_back(field_);
    if (fields_.size() > kMostShellWords) refuse_words();
    field_.clear();
    has_field_ = false;
  }
  /// Values of a variable outside of quotes: split at blanks.
  void add_split(const std::vector<std::string>& values) {
    for (std::size_t v = 0; v < values.size(); ++v) {
      if (v > 0) end_field();
      for (const char c : values[v])
        if (is_blank(c) || c == '\n')
          end_field();
        else
          add(std::string(1, c));
    }
  }

  void read_quoted() {
    const int first = line_;
    take();
    has_field_ = true;
    while (!ends() && peek() != '\'') add(std::string(1, take()));
    if (ends()) refuse(source_, first, "quote without an end", "add the closing quote");
    take();
  }

  void read_double_quoted() {
    const int first = line_;
    take();
    has_field_ = true;
    while (!ends() && peek() != '"') {
      if (skip_continuation()) continue;
      if (peek() == '$') {
        add_values(read_expansion(0));
      } else if (peek() == '\\' &&
                 std::string_view("\\\"$`").find(peek(1)) != std::string_view::npos) {
        take();
        add(std::string(1, take()));
      } else {
        add(std::string(1, take()));
      }
    }
    if (ends()) refuse(source_, first, "quote without an end", "add the closing quote");
    take();
  }
  /// "${A[@]}" is one word per element, and none if there are none.
  void add_values(const std::vector<std::string>& values) {
    if (values.empty() && field_.empty()) has_field_ = false;
    for (std::size_t v = 0; v < values.size(); ++v) {
      if (v > 0) end_field();
      add(values[v]);
    }
  }

  // ---- expansions ----
  /// What follows a dollar sign.
  std::vector<std::string> read_expansion(int depth) {
    const std::size_t begin = at_;
    take();
    if (peek() == '{') return expand_braces(read_balanced('{', '}'), depth);
    if (peek() == '(' && peek(1) == '(') {
      const std::string all = read_balanced('(', ')');
      const std::string inner = all.size() >= 2 ? all.substr(1, all.size() - 2) : "";
      if (const auto value = evaluate_arithmetic(inner, script_.variables))
        return {std::to_string(*value)};
      return {"$(" + all + ")"};
    }
    if (peek() == '(') return {"$(" + read_balanced('(', ')') + ")"};
    if (peek() == '@' || peek() == '*') {  // arguments of the script
      take();
      return {};
    }
    if (!starts_name(peek())) return {ends() ? "$" : std::string("$") + take()};
    while (!ends() && continues_name(peek())) take();
    const std::string name(text_.substr(begin + 1, at_ - begin - 1));
    const auto found = script_.variables.find(name);
    if (found == script_.variables.end()) return {"$" + name};
    if (found->second.empty()) return {};
    return {found->second.front()};
  }

  /// The text between two brackets that belong together.
  std::string read_balanced(char open, char close) {
    const int first = line_;
    take();
    const std::size_t begin = at_;
    for (int depth = 1; !ends(); take()) {
      if (peek() == open) ++depth;
      if (peek() == close && --depth == 0) break;
    }
    if (ends()) refuse(source_, first, fmt::format("'{}' without '{}'", open, close), "");
    std::string inner(text_.substr(begin, at_ - begin));
    take();
    return inner;
  }

  /// The inside of ${…}: NAME, NAME[@], NAME[0], NAME:-default.
  std::vector<std::string> expand_braces(const std::string& inner, int depth) {
    std::size_t end = 0;
    while (end < inner.size() && continues_name(inner[end])) ++end;
    const std::string name = inner.substr(0, end);
    std::string rest = inner.substr(end);
    const auto found = script_.variables.find(name);
    const bool is_set = found != script_.variables.end() && !found->second.empty();
    bool is_all = false;
    if (rest.starts_with("[")) {
      const std::size_t close = rest.find(']');
      is_all = rest.starts_with("[@]") || rest.starts_with("[*]");
      rest = close == std::string::npos ? "" : rest.substr(close + 1);
    }
    if (is_set && (!found->second.front().empty() || !rest.starts_with(":")))
      return is_all ? found->second : std::vector{found->second.front()};
    for (const std::string_view mark : {":-", ":=", "-", "="})
      if (rest.starts_with(mark)) return expand_default(rest.substr(mark.size()), depth);
    if (found != script_.variables.end()) return {};
    return {"${" + inner + "}"};
  }

  std::vector<std::string> expand_default(const std::string& text, int depth) {
    if (depth >= kDeepestShellExpansion) return {text};
    if (!text.starts_with("${") || text.back() != '}') {
      if (text.starts_with("$")) {
        const auto found = script_.variables.find(text.substr(1));
        if (found != script_.variables.end() && !found->second.empty())
          return {found->second.front()};
      }
      return {text};
    }
    return expand_braces(text.substr(2, text.size() - 3), depth + 1);
  }

  const NamedText& source_;
  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
  std::size_t word_count_ = 0, character_count_ = 0;
  ShellScript script_;
  std::vector<std::string> fields_;
  std::string field_;
  bool has_field_ = false;
};

}  // namespace

ShellScript read_shell_script(const NamedText& source) { return ShellReader(source).read(); }

}  // namespace meshwright
