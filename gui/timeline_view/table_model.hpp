/// The visible slices of a timeline as a table: for reading
/// exact values, for screen readers, the clipboard and CSV.
#pragma once

#include <QAbstractTableModel>
#include <memory>
#include <vector>

#include "gui/timeline/causes.hpp"
#include "gui/timeline/tracks.hpp"

namespace meshwright::gui {

class TimelineTableModel : public QAbstractTableModel {
  Q_OBJECT
 public:
  enum Column {
    kRank,
    kStream,
    kStage,
    kName,
    kKind,
    kMicrobatch,
    kStart,
    kDuration,
    kSlack,
    kWaitsFor,
    kColumnCount
  };
  /// Maximum number of rows; see is_cut().
  static constexpr std::size_t kMostRows = 200'000;

  explicit TimelineTableModel(QObject* parent = nullptr);
  /// Shows the slices of `rows` (ascending indices into tracks.rows; empty for all) that overlap
  /// [from, to), row by row.
  void show(std::shared_ptr<const TimelineTracks> tracks,
            std::shared_ptr<const TimelineCauses> causes, const std::vector<std::size_t>& rows,
            Nanoseconds from, Nanoseconds to);
  /// True if slices were omitted because of kMostRows.
  bool is_cut() const { return cut_; }
  bool shows(const std::shared_ptr<const TimelineTracks>& tracks) const {
    return tracks_ == tracks;
  }
  /// The row of a slice; -1 if not shown. O(log rows).
  int row_of(std::size_t slice) const;
  std::size_t slice_of(int row) const { return slices_[static_cast<std::size_t>(row)]; }

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  QVariant headerData(int section, Qt::Orientation orientation,
                      int role = Qt::DisplayRole) const override;

  /// Comma-separated values; times in nanoseconds; the header is always English.
  QString to_csv() const;

 private:
  std::shared_ptr<const TimelineTracks> tracks_;
  std::shared_ptr<const TimelineCauses> causes_;
  std::vector<std::uint32_t> slices_;
  bool cut_ = false;
};

}  // namespace meshwright::gui
