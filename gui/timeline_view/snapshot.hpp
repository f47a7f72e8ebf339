/// The content of a TimelineView at one moment, to be painted or
/// written on any thread. Taking one is cheap (about a millisecond):
/// rows are shared, names and rulers are recorded, nothing is painted.
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

#include "gui/timeline/painter.hpp"
#include "gui/timeline/statistics.hpp"

namespace meshwright::gui {

struct TimelineSnapshot {
  TimelineScene scene;  ///< the rows; without tracks if the view is empty
  QPicture frame;       ///< names, overview, ruler, selection and cursors; no hover
  QSize size;           ///< of the view, in pixels
  QPoint body;          ///< top left corner of the rows
  QFont font;
  int dots_per_inch = 96;                ///< screen resolution used by `frame`
  std::vector<std::size_t> rows;         ///< visible rows, ascending, for tables and traces
  std::optional<TimelineArea> selected;  ///< area for the copied statistics
};

/// Renders `scale` pixels per pixel of the view.
QImage to_image(const TimelineSnapshot& snapshot, double scale = 1.0);

/// Visible slices as CSV with a header line.
QString to_csv(const TimelineSnapshot& snapshot);

/// For spreadsheets: statistics of the selected area if there is one, else to_csv().
QString to_table(const TimelineSnapshot& snapshot);

enum class AreaFormat : std::uint8_t { kMarkdown, kJson };
/// Statistics of the selected area, or else of the visible range.
QString area_text(const TimelineSnapshot& snapshot, AreaFormat format);

/// The suffix selects the format: .png .pdf .svg .csv .pftrace. Never
/// leaves a partial file. Throws InputError for other suffixes or an
/// empty snapshot, RuntimeFailure if the file cannot be written.
void write_snapshot(const TimelineSnapshot& snapshot, const std::string& path, double scale = 1.0);

/// True if built with Qt's SVG module.
bool can_write_svg();

}  // namespace meshwright::gui
