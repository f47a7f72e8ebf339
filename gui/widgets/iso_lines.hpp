/// Contour lines through a grid of values.
#pragma once

#include <QLineF>
#include <optional>
#include <vector>

namespace meshwright::gui {

/// Values by row; nullopt where a value is missing. All rows have the same length.
using ValueGrid = std::vector<std::vector<std::optional<double>>>;

/// Segments of the contour line at `level`, with linear interpolation between neighbors: x counts
/// columns and y rows, (0, 0) is the first value. Squares with a missing corner are skipped.
/// Marching squares; saddles are resolved by the mean of the four corners.
std::vector<QLineF> iso_line(const ValueGrid& grid, double level);

}  // namespace meshwright::gui
