/// What a TimelineView shows at one moment, to be painted or written on any thread. Taking one is a
/// matter of a millisecond: rows are shared, names and rulers are recorded, nothing is painted.
#pragma once

#include <QFont>
#include <QImage>
#include <QPicture>
#include <QPoint>
#include <QSize>
#include <QString>
#include <optional>
#include <string>
#include <vector>

#include "gui/timeline_painter.hpp"
#include "gui/timeline_statistics.hpp"

namespace meshwright::gui {

struct TimelineSnapshot {
  TimelineScene scene;  ///< the rows; without tracks where nothing is shown
  QPicture frame;       ///< names, overview, ruler, selection and cursors; not the pointer
  QSize size;           ///< of the view, pixels
  QPoint body;          ///< where the rows begin in it
  QFont font;
  int dots_per_inch = 96;                ///< of the screen; `frame` is recorded in it
  std::vector<std::size_t> rows;         ///< visible ones, ascending, for tables and traces
  std::optional<TimelineArea> selected;  ///< its statistics are what is copied as a table
};

/// `scale` pixels per pixel of the view.
QImage to_image(const TimelineSnapshot& snapshot, double scale = 1.0);

/// Visible slices as CSV, with a line of titles.
QString to_csv(const TimelineSnapshot& snapshot);

/// For a spreadsheet: statistics of the area selected, else to_csv().
QString to_table(const TimelineSnapshot& snapshot);

enum class AreaFormat : std::uint8_t { kMarkdown, kJson };
/// Statistics of the area selected, else of all that is shown.
QString area_text(const TimelineSnapshot& snapshot, AreaFormat format);

/// Format by suffix: .png .pdf .svg .csv .pftrace. The file is whole or not there. Throws
/// InputError for any other suffix or an empty snapshot, RuntimeFailure if it cannot be written.
void write_snapshot(const TimelineSnapshot& snapshot, const std::string& path, double scale = 1.0);

/// Whether this build has Qt's SVG module.
bool can_write_svg();

}  // namespace meshwright::gui
