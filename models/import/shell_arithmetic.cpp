#include "models/import/shell_arithmetic.hpp"

#include "core/base/number_from_text.hpp"

namespace meshwright {
namespace {

constexpr std::int64_t kLargestResult = 1'000'000'000'000'000;
constexpr int kDeepestParentheses = 32;

class ArithmeticReader {
 public:
  ArithmeticReader(std::string_view text,
                   const std::map<std::string, std::vector<std::string>>& variables)
      : text_(text), variables_(variables) {}

  std::optional<std::int64_t> read() {
    const std::optional<std::int64_t> value = sum(0);
    skip();
    return at_ == text_.size() ? value : std::nullopt;
  }

 private:
  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n'))
      ++at_;
  }
  bool accept(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  static std::optional<std::int64_t> limited(std::int64_t value) {
    if (value > kLargestResult || value < -kLargestResult) return std::nullopt;
    return value;
  }

  std::optional<std::int64_t> sum(int depth) {
    std::optional<std::int64_t> left = product(depth);
    while (left) {
      const bool plus = accept('+');
      if (!plus && !accept('-')) break;
      const std::optional<std::int64_t> right = product(depth);
      if (!right) return std::nullopt;
      left = limited(plus ? *left + *right : *left - *right);
    }
    return left;
  }

  std::optional<std::int64_t> product(int depth) {
    std::optional<std::int64_t> left = operand(depth);
    while (left) {
      const char sign = accept('*') ? '*' : accept('/') ? '/' : accept('%') ? '%' : '\0';
      if (sign == '\0') break;
      const std::optional<std::int64_t> right = operand(depth);
      if (!right || (sign != '*' && *right == 0)) return std::nullopt;
      std::int64_t value = 0;
      if (sign == '*' && __builtin_mul_overflow(*left, *right, &value)) return std::nullopt;
      if (sign == '/') value = *left / *right;
      if (sign == '%') value = *left % *right;
      left = limited(value);
    }
    return left;
  }

  std::optional<std::int64_t> operand(int depth) {
    if (depth > kDeepestParentheses) return std::nullopt;
    if (accept('(')) {
      const std::optional<std::int64_t> value = sum(depth + 1);
      return accept(')') ? value : std::nullopt;
    }
    accept('$');
    const bool braces = accept('{');
    skip();
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    std::string word(text_.substr(begin, at_ - begin));
    if (braces && !accept('}')) return std::nullopt;
    if (const auto found = variables_.find(word);
        found != variables_.end() && !found->second.empty())
      word = found->second.front();
    const auto number = number_from_text<std::int64_t>(word);
    return number ? limited(*number) : std::nullopt;
  }
  static bool is_word(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  }

  std::string_view text_;
  const std::map<std::string, std::vector<std::string>>& variables_;
  std::size_t at_ = 0;
};

}  // namespace

std::optional<std::int64_t> evaluate_arithmetic(
    std::string_view text, const std::map<std::string, std::vector<std::string>>& variables) {
  return ArithmeticReader(text, variables).read();
}

}  // namespace meshwright
