/// The visible slices of a timeline as a table: for reading exact values, for screen readers and
/// for copying to a spreadsheet.
#pragma once

#include <QTableView>
#include <QTimer>

namespace meshwright::gui {

class TimelineTableModel;
class TimelineView;

class SliceTable : public QTableView {
  Q_OBJECT
 public:
  /// Follows the visible range of `view` while the table is
  /// visible; table row and selected slice stay in sync.
  explicit SliceTable(TimelineView& view, QWidget* parent = nullptr);
  const TimelineTableModel& slices() const { return *slices_; }
  /// Schedules one refill for many moves of the view.
  void refill_soon();
  bool is_settled() const { return !isVisible() || !later_.isActive(); }

 protected:
  void keyPressEvent(QKeyEvent* event) override;
  void showEvent(QShowEvent* event) override;

 private:
  void refill();
  void choose(qint64 slice);
  void copy_rows() const;

  TimelineView& view_;
  TimelineTableModel* slices_;
  QTimer later_;
};

}  // namespace meshwright::gui
