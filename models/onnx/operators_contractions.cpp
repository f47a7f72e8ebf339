// Einstein sums.
#include <algorithm>
#include <map>

#include "core/base/split_at.hpp"
#include "models/onnx/operators.hpp"

namespace meshwright::onnx {
namespace {

/// The terms of "bij,bjk->bik"; the result is written out if it is implied.
struct Equation {
  std::vector<std::string> inputs;
  std::string result;
};

constexpr std::string_view kEllipsis = "...";

/// The dimensions of an ellipsis are the digits 0, 1, … from the last one to the first.
std::string without_ellipsis(const NodeContext& node, std::string term, std::size_t count) {
  const std::size_t at = term.find(kEllipsis);
  if (at == std::string::npos) return term;
  node.require(count <= kMostDimensions, "an ellipsis has too many dimensions");
  std::string letters;
  while (count-- > 0) letters += static_cast<char>('0' + count);
  return term.replace(at, kEllipsis.size(), letters);
}

/// Splits "bij,bjk" at commas; every ellipsis has the dimensions that its input has left.
std::vector<std::string> parse_terms(const NodeContext& node, std::string_view text,
                                     std::size_t& ellipsis) {
  std::vector<std::string> terms;
  for (const std::string_view term : split_at_commas(text)) {
    const std::size_t i = terms.size();
    const bool has_ellipsis = term.find(kEllipsis) != std::string_view::npos;
    node.require(i < node.input_count(), "more terms than inputs");
    const std::size_t letters = term.size() - (has_ellipsis ? kEllipsis.size() : 0);
    node.require(letters <= node.rank(i), "a term has more letters than dimensions");
    if (has_ellipsis) ellipsis = std::max(ellipsis, node.rank(i) - letters);
    terms.push_back(without_ellipsis(node, std::string(term), node.rank(i) - letters));
  }
  return terms;
}

Equation parse_equation(const NodeContext& node) {
  std::string text = node.text("equation", "");
  std::erase(text, ' ');
  const std::size_t arrow = text.find("->");
  std::size_t ellipsis = 0;
  Equation equation;
  equation.inputs = parse_terms(node, std::string_view(text).substr(0, arrow), ellipsis);
  if (arrow != std::string::npos) {
    equation.result = without_ellipsis(node, text.substr(arrow + 2), ellipsis);
    return equation;
  }
  equation.result = without_ellipsis(node, std::string(kEllipsis), ellipsis);
  std::map<char, int> uses;
  for (const std::string& term : equation.inputs)
    for (const char letter : term) ++uses[letter];
  for (const auto& [letter, count] : uses)
    if (count == 1 && equation.result.find(letter) == std::string::npos) equation.result += letter;
  return equation;
}

/// The sizes of all letters.
std::map<char, std::int64_t> letter_sizes(const NodeContext& node, const Equation& equation) {
  node.require(equation.inputs.size() == node.input_count(), "another number of terms than inputs");
  std::map<char, std::int64_t> sizes;
  for (std::size_t i = 0; i < equation.inputs.size(); ++i) {
    const std::string& term = equation.inputs[i];
    node.require(term.size() == node.rank(i), "a term has another number of dimensions");
    for (std::size_t d = 0; d < term.size(); ++d) {
      const std::int64_t dim = node.dims(i)[d];
      const auto [known, is_new] = sizes.emplace(term[d], dim);
      if (known->second == 1) known->second = dim;  // sizes of 1 are broadcast
      node.require(is_new || dim == 1 || known->second == dim, "a letter has two sizes");
    }
  }
  return sizes;
}

/// The letters of the result and of the terms after term `i`.
std::string letters_needed_after(const Equation& equation, std::size_t i) {
  std::string letters = equation.result;
  for (std::size_t later = i + 1; later < equation.inputs.size(); ++later)
    letters += equation.inputs[later];
  return letters;
}

bool contains(std::string_view letters, char letter) {
  return letters.find(letter) != std::string_view::npos;
}

/// Dimensions with the same letter are the same; letters that the result does not have are summed.
void link_letters(NodeContext& node, const Equation& equation) {
  for (std::size_t i = 0; i < equation.inputs.size(); ++i)
    for (std::size_t d = 0; d < equation.inputs[i].size(); ++d) {
      const char letter = equation.inputs[i][d];
      const std::size_t place = equation.result.find(letter);
      if (place != std::string::npos) {
        node.link(i, d, place);
        continue;
      }
      node.sum_over(i, d);
      const std::size_t other = i == 0 ? std::string::npos : equation.inputs[0].find(letter);
      if (other != std::string::npos) node.link_inputs(i, d, 0, other);
    }
}

}  // namespace

/// Two terms: a product with the letters of both in its batch, those of one term in its rows or
/// columns, and those that are summed in its depth. More terms are multiplied from the left.
void apply_einsum(NodeContext& node) {
  const Equation equation = parse_equation(node);
  const std::map<char, std::int64_t> sizes = letter_sizes(node, equation);
  Dimensions dims;
  for (const char letter : equation.result) {
    node.require(sizes.contains(letter), "a letter of the result is in no term");
    dims.push_back(sizes.at(letter));
  }
  node.set_output(std::move(dims));
  if (equation.inputs.size() <= 2) link_letters(node, equation);
  if (equation.inputs.size() == 1) return node.memory_bound();
  std::string left = equation.inputs[0];
  for (std::size_t i = 1; i < equation.inputs.size(); ++i) {
    const std::string needed = letters_needed_after(equation, i);
    ProductSize size;
    std::string next;
    double elements = 1;
    for (const auto& [letter, dim] : sizes) {
      const bool in_left = contains(left, letter), in_right = contains(equation.inputs[i], letter);
      if (!in_left && !in_right) continue;
      elements *= static_cast<double>(std::max<std::int64_t>(1, dim));
      node.require(elements < 0x1p60, "the sum has too many terms");
      std::int64_t& part = !contains(needed, letter) ? size.k
                           : in_left && in_right     ? size.batch
                           : in_left                 ? size.m
                                                     : size.n;
      part *= dim;
      if (contains(needed, letter)) next += letter;
    }
    node.product(size, 0, i);
    left = next;
  }
}

}  // namespace meshwright::onnx
