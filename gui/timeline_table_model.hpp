/// The visible part of the timeline as a table: for people who read rather than look, for screen
/// readers, for the clipboard and for CSV.
#pragma once

#include <QAbstractTableModel>
#include <memory>
#include <vector>

#include "gui/timeline_causes.hpp"
#include "gui/timeline_tracks.hpp"

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
  /// More rows than this are cut off; is_cut() says so.
  static constexpr std::size_t kMostRows = 200'000;

  explicit TimelineTableModel(QObject* parent = nullptr);
  /// Slices of `rows` (indices in tracks.rows, ascending; empty: all) that have a part in [from,
  /// to), row by row.
  void show(std::shared_ptr<const TimelineTracks> tracks,
            std::shared_ptr<const TimelineCauses> causes, const std::vector<std::size_t>& rows,
            Nanoseconds from, Nanoseconds to);
  bool is_cut() const { return cut_; }
  bool shows(const std::shared_ptr<const TimelineTracks>& tracks) const {
    return tracks_ == tracks;
  }
  /// Of a slice; -1 if it is not shown. Logarithmic.
  int row_of(std::size_t slice) const;
  std::size_t slice_of(int row) const { return slices_[static_cast<std::size_t>(row)]; }

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  QVariant headerData(int section, Qt::Orientation orientation,
                      int role = Qt::DisplayRole) const override;

  /// Comma-separated, times in nanoseconds, header in English whatever the language.
  QString to_csv() const;

 private:
  std::shared_ptr<const TimelineTracks> tracks_;
  std::shared_ptr<const TimelineCauses> causes_;
  std::vector<std::uint32_t> slices_;
  bool cut_ = false;
};

}  // namespace meshwright::gui
