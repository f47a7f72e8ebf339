/// The slices that a timeline shows, as a table beside it: for people who read rather than look,
/// for screen readers, and to be copied into a spreadsheet.
#pragma once

#include <QTableView>
#include <QTimer>

namespace meshwright::gui {

class TimelineTableModel;
class TimelineView;

class SliceTable : public QTableView {
  Q_OBJECT
 public:
  /// Follows what `view` shows while it can be seen itself; the row that is chosen is the slice
  /// that is selected.
  explicit SliceTable(TimelineView& view, QWidget* parent = nullptr);
  const TimelineTableModel& slices() const { return *slices_; }
  /// Soon: many moves of the view end in one new table.
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
