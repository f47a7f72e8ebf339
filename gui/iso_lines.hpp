/// Lines of equal value through a grid of values.
#pragma once

#include <QLineF>
#include <optional>
#include <vector>

namespace meshwright::gui {

/// Values by row; absent where there is none. All rows are equally long.
using ValueGrid = std::vector<std::vector<std::optional<double>>>;

/// Pieces of the line where the grid, taken as straight between neighbours, has `level`: x counts
/// columns and y rows, (0, 0) is the first value. Squares of four neighbours with a value missing
/// are left out. Marching squares; saddles are decided by the mean of the four.
std::vector<QLineF> iso_line(const ValueGrid& grid, double level);

}  // namespace meshwright::gui
