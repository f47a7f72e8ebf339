#include "gui/widgets/iso_lines.hpp"

#include <array>

namespace meshwright::gui {
namespace {

/// A square of the grid; corners clockwise from the left one of its first row.
struct Square {
  std::array<QPointF, 4> at;
  std::array<double, 4> value;
};

/// Where the level crosses the side from corner `i` to the next one, if it does.
std::optional<QPointF> crossing(const Square& square, std::size_t i, double level) {
  const std::size_t j = (i + 1) % 4;
  const double a = square.value[i], b = square.value[j];
  if ((a < level) == (b < level)) return std::nullopt;
  const double share = (level - a) / (b - a);
  return square.at[i] + share * (square.at[j] - square.at[i]);
}

void add_lines(const Square& square, double level, std::vector<QLineF>& lines) {
  std::array<std::optional<QPointF>, 4> side;
  std::vector<QPointF> crossings;
  for (std::size_t i = 0; i < 4; ++i)
    if ((side[i] = crossing(square, i, level))) crossings.push_back(*side[i]);
  if (crossings.size() == 2) lines.emplace_back(crossings[0], crossings[1]);
  if (crossings.size() != 4) return;
  // A saddle: the value in the middle decides which corners are connected.
  const double middle = (square.value[0] + square.value[1] + square.value[2] + square.value[3]) / 4;
  const bool first_with_middle = (square.value[0] < level) == (middle < level);
  const std::size_t shift = first_with_middle ? 0 : 1;
  // Each line separates one corner that is on the other side of the level than the middle.
  lines.emplace_back(*side[shift], *side[(shift + 1) % 4]);
  lines.emplace_back(*side[(shift + 2) % 4], *side[(shift + 3) % 4]);
}

}  // namespace

std::vector<QLineF> iso_line(const ValueGrid& grid, double level) {
  std::vector<QLineF> lines;
  for (std::size_t row = 0; row + 1 < grid.size(); ++row)
    for (std::size_t column = 0; column + 1 < grid[row].size(); ++column) {
      const auto &a = grid[row][column], &b = grid[row][column + 1], &c = grid[row + 1][column + 1],
                 &d = grid[row + 1][column];
      if (!a || !b || !c || !d) continue;
      const auto x = static_cast<double>(column), y = static_cast<double>(row);
      add_lines({{QPointF(x, y), QPointF(x + 1, y), QPointF(x + 1, y + 1), QPointF(x, y + 1)},
                 {*a, *b, *c, *d}},
                level, lines);
    }
  return lines;
}

}  // namespace meshwright::gui
