/// The timeline widget: ruler, overview, rows of slices, counters, cursors. Shows immutable
/// TimelineTracks; requests for changes are emitted as signals. Rows are painted by worker threads;
/// the GUI thread blits and draws the overlay.
///
/// The widget receives events and delegates: its parts decide what to show. Every action of the
/// view is a QAction in actions(), with shortcut and text, for menus and the command palette.
/// Signals pass times as qint64 nanoseconds (QVariant does not support Quantity).
#pragma once

#include <QString>
#include <QWidget>
#include <array>
#include <memory>

#include "gui/timeline_view/snapshot.hpp"
#include "gui/timeline_view/state.hpp"

namespace meshwright::gui {

class TimelineTableModel;

class TimelineView : public QWidget {
  Q_OBJECT

 public:
  explicit TimelineView(QWidget* parent = nullptr);
  ~TimelineView() override;

  // ---- content; constant time, shared data ------------------------------------------------------
  /// Null clears the view. The visible range is kept if the new tracks are about as long as the old
  /// ones (a slider moved); otherwise everything is shown.
  void set_tracks(std::shared_ptr<const TimelineTracks> tracks);
  const std::shared_ptr<const TimelineTracks>& tracks() const { return state_.content.tracks; }
  /// Causes, critical path, slack and hatching for the current tracks. Null if unknown.
  void set_causes(std::shared_ptr<const TimelineCauses> causes);
  /// Starts a short animation of slices from their positions in `before`, as seen through `window`.
  /// Skipped if motion is reduced or there are too many slices.
  void glide_from(const TimelineTracks& before, const TimeWindow& window);
  bool is_gliding() const;
  /// Draws outlines of another timeline over this one (A/B snapshot). Null for none.
  void set_ghost(std::shared_ptr<const TimelineTracks> ghost);
  /// Shows predicted and measured rows in pairs, with a difference lane; `pairs` is the result of
  /// compare_tracks(), which is too slow for the GUI thread. Ended by set_tracks().
  void set_comparison(std::shared_ptr<const TimelineTracks> predicted,
                      std::shared_ptr<const TimelineTracks> measured,
                      std::shared_ptr<const TimelineComparison> pairs);
  /// Replaces the pairs after a new alignment. Does nothing without a comparison.
  void set_pairs(std::shared_ptr<const TimelineComparison> pairs);
  /// Shows the same predicted slices at other times (gui/timeline/morph.hpp); selection and visible
  /// range are kept. Does nothing without a comparison.
  void set_morphed(std::shared_ptr<const TimelineTracks> predicted);
  /// Text shown while the view is empty: "Planning…".
  void set_placeholder(const QString& text);

  // ---- parts ------------------------------------------------------------------------------------
  TimelineAppearance& appearance() { return state_.appearance; }
  TimelineViewport& viewport() { return state_.viewport; }
  TimelineLanes& lanes() { return state_.lanes; }
  TimelineSelection& selection() { return state_.selection; }
  TimelineNavigation& navigation() { return state_.navigation; }
  TimelineEditing& editing() { return state_.editing; }
  const TimelineState& state() const { return state_; }
  /// Keys (Qt::Key) that zoom in, zoom out, pan left and pan right while held; 0 for the default,
  /// the physical position of W, S, A, D on a US keyboard.
  void set_held_keys(const std::array<int, 4>& keys);

  // ---- output -----------------------------------------------------------------------------------
  /// The current content, to be painted, copied or written elsewhere.
  TimelineSnapshot snapshot() const;
  /// Fills the table with the visible slices.
  void fill_table(TimelineTableModel& table) const;
  /// Blocks until the view is up to date; for tests and screenshots.
  void wait_for_painters();

  QSize sizeHint() const override { return {960, 420}; }
  QSize minimumSizeHint() const override { return {320, 140}; }

 Q_SIGNALS:
  /// -1: no slice under the pointer.
  void slice_hovered(qint64 slice);
  /// One line of text about the item under the pointer, for the status bar and screen readers.
  void hover_text_changed(const QString& text);
  /// The `/` or G key was pressed: the window should focus its search or go-to field.
  void search_requested();
  void go_to_requested();

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
  void focusOutEvent(QFocusEvent* event) override;
  void changeEvent(QEvent* event) override;

 private:
  struct Parts;  ///< what only the widget needs: input, images, animation, actions

  void connect_state();
  void connect_parts();
  void show_new_tracks(bool keep_range);
  void arrange();
  void fit_geometry();
  void refresh();
  void request_overview();

  TimelineState state_;
  std::unique_ptr<Parts> parts_;
};

}  // namespace meshwright::gui
