/// The timeline on the screen: ruler, minimap, rows of slices, counters, cursors. Shows
/// TimelineTracks and changes nothing but its own view; what the user wants changed leaves as a
/// signal. Rows are painted by worker threads; the GUI thread blits and draws the overlay.
///
/// Every action of the view is a QAction in actions(), with shortcut and text, for menus and the
/// command palette. Times are nanoseconds as qint64 in signals (QML and QVariant know no Quantity).
#pragma once

#include <QAction>
#include <QImage>
#include <QString>
#include <QWidget>
#include <functional>
#include <memory>
#include <optional>

#include "gui/timeline_causes.hpp"
#include "gui/timeline_colours.hpp"
#include "gui/timeline_comparison.hpp"
#include "gui/timeline_order_edit.hpp"
#include "gui/timeline_statistics.hpp"
#include "gui/timeline_tracks.hpp"

namespace meshwright {

class TimelineView : public QWidget {
  Q_OBJECT

 public:
  explicit TimelineView(QWidget* parent = nullptr);
  ~TimelineView() override;

  // ---- what is shown; constant time, shared data ------------------------------------------------
  /// Null empties the view. The visible range is kept when the new tracks are about as long as the
  /// old ones (a slider moved), else everything is shown.
  void setTracks(std::shared_ptr<const TimelineTracks> tracks);
  std::shared_ptr<const TimelineTracks> tracks() const;
  /// Chains of causes, critical path, slack and hatching of the tracks shown. Null: none known.
  void setCauses(std::shared_ptr<const TimelineCauses> causes);
  /// Outlines of another timeline over this one (A/B snapshot). Null: none.
  void setGhost(std::shared_ptr<const TimelineTracks> ghost);
  /// Predicted over measured, row by row, with a lane of differences. Ends with setTracks().
  void setComparison(std::shared_ptr<const TimelineTracks> predicted,
                     std::shared_ptr<const TimelineTracks> measured);
  void setAlignment(ComparisonAlignment alignment, Nanoseconds free_offset = {});
  /// Text in place of rows while nothing is shown: "Planning…".
  void setPlaceholder(const QString& text);

  // ---- looks ------------------------------------------------------------------------------------
  void setTheme(const TimelineColours& colours);
  const TimelineColours& theme() const;
  void setReducedMotion(bool reduced);
  void setCriticalPathShown(bool shown);
  void setArrowsShown(bool shown);
  void setBubbleCausesShown(bool shown);
  void setCountersShown(bool shown);
  void setReplicasFolded(bool folded);
  /// Colour by micro-batch in place of kind.
  void setMicrobatchColours(bool shown);

  // ---- where the view is ------------------------------------------------------------------------
  void showAll();
  void showRange(Nanoseconds from, Nanoseconds to);
  Nanoseconds visibleFrom() const;
  Nanoseconds visibleTo() const;
  /// Scrolls to the slice, selects it, zooms only if it would be narrower than a few pixels.
  void goToSlice(std::size_t slice);
  /// "r12 3.5ms", "12", "3.5 ms": rank, time or both; false with nothing changed if not understood.
  bool goTo(const QString& place);
  /// Slices whose name holds `text`; the number of hits. Moves to the first from the view on.
  int search(const QString& text);
  void nextHit();
  void previousHit();

  // ---- selection --------------------------------------------------------------------------------
  std::optional<std::size_t> selectedSlice() const;
  std::optional<TimelineArea> selectedArea() const;
  void selectSlice(std::optional<std::size_t> slice);
  void selectArea(const std::optional<TimelineArea>& area);
  std::optional<Nanoseconds> cursorA() const;
  std::optional<Nanoseconds> cursorB() const;

  // ---- editing ----------------------------------------------------------------------------------
  /// Slices of compute rows can be dragged to another place in the order of their row, and a
  /// stage's handle (left of its row) to slow the stage down.
  void setEditable(bool editable);
  /// Judges an order while it is dragged: empty if it is sound, else the reason in words. Called on
  /// the GUI thread, must answer within a few milliseconds.
  void setOrderJudge(std::function<QString(const OrderEdit&)> judge);

  // ---- out --------------------------------------------------------------------------------------
  /// What is visible, at `scale` pixels per pixel. Waits for the painters.
  QImage toImage(double scale = 1.0);
  /// Format by suffix: .png .svg .pdf .csv .pftrace; visible range and rows. Returns the reason if
  /// it cannot be done, else an empty string.
  QString exportTo(const QString& path, double scale = 1.0);
  void copyImage();
  void copyTable();
  /// Waits until what is shown is what was asked for; for tests and screenshots.
  void waitForPainters();

  QSize sizeHint() const override;
  QSize minimumSizeHint() const override;

 public slots:
  void zoomIn();
  void zoomOut();
  void fitSelection();
  void nextSlice();
  void previousSlice();
  void followDependency();
  void followDependencyBack();
  void selectionToArea();
  void markSelection();
  void nextBubble();
  void previousBubble();
  void toggleCriticalPath();
  void togglePinOfRow();
  void clearSelection();

 signals:
  /// -1: nothing under the pointer.
  void sliceHovered(qint64 slice);
  void sliceSelected(qint64 slice);
  /// A gap of a compute row: the slice after it, or -1.
  void bubbleHovered(qint64 slice_after);
  void bubbleSelected(qint64 slice_after);
  void areaSelected(const meshwright::TimelineArea& area);
  void areaCleared();
  void visibleRangeChanged(qint64 from_ns, qint64 to_ns);
  void cursorsChanged();
  /// One line on what is under the pointer, for the status bar; also for screen readers.
  void hoverTextChanged(const QString& text);
  /// The user wants stage `stage` to take `factor` times as long (straggler). Emitted while
  /// dragging with `final` false, once with true at the end.
  void stageSlowdownRequested(int stage, double factor, bool final);
  /// The user dropped a slice at another place of its row's order.
  void orderEdited(const meshwright::OrderEdit& edit);
  /// `/` or G was pressed: the window should focus its search or go-to field.
  void searchRequested();
  void goToRequested();

 protected:
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void keyReleaseEvent(QKeyEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void contextMenuEvent(QContextMenuEvent* event) override;
  void leaveEvent(QEvent* event) override;
  void changeEvent(QEvent* event) override;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace meshwright
