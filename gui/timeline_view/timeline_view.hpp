/// The timeline widget: ruler, overview, rows of slices, counters, cursors. Shows immutable
/// TimelineTracks; requests for changes are emitted as signals. Rows are painted by worker threads;
/// the GUI thread blits and draws the overlay.
///
/// Every action of the view is a QAction in actions(), with shortcut and text, for menus and the
/// command palette. Signals pass times as qint64 nanoseconds (QVariant does not support Quantity).
#pragma once

#include <QAction>
#include <QImage>
#include <QString>
#include <QWidget>
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "gui/timeline/causes.hpp"
#include "gui/timeline/colours.hpp"
#include "gui/timeline/comparison.hpp"
#include "gui/timeline/layout.hpp"
#include "gui/timeline/order_edit.hpp"
#include "gui/timeline/statistics.hpp"
#include "gui/timeline/tracks.hpp"
#include "gui/timeline_view/snapshot.hpp"

class QMenu;
class QPainter;

namespace meshwright::gui {

struct TimelineGeometry;
struct TimelineTarget;
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
  std::shared_ptr<const TimelineTracks> tracks() const;
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
  /// Pairs, offset and residual of the current comparison; null if there is none.
  std::shared_ptr<const TimelineComparison> comparison() const;
  /// Text shown while the view is empty: "Planning…".
  void set_placeholder(const QString& text);

  // ---- appearance -------------------------------------------------------------------------------
  void set_theme(const TimelineColours& colours);
  const TimelineColours& theme() const;
  void set_reduced_motion(bool reduced);
  /// Keys (Qt::Key) that zoom in, zoom out, pan left and pan right while held; 0 for the default,
  /// the physical position of W, S, A, D on a US keyboard.
  void set_held_keys(const std::array<int, 4>& keys);
  void set_critical_path_shown(bool shown);
  void set_arrows_shown(bool shown);
  void set_bubble_causes_shown(bool shown);
  void set_counters_shown(bool shown);
  /// Shows memory counters if they fit without scrolling, until the next set_counters_shown().
  void set_counters_where_room();
  void set_replicas_folded(bool folded);
  /// Shows the streams of all ranks, not only of expanded ones.
  void set_all_streams_shown(bool shown);
  void set_lane_order(LaneOrder order);
  const LaneOptions& lane_options() const;
  /// Colors slices by micro-batch instead of by kind.
  void set_microbatch_colours(bool shown);

  // ---- navigation -------------------------------------------------------------------------------
  void show_all();
  void show_range(Nanoseconds from, Nanoseconds to);
  Nanoseconds visible_from() const;
  Nanoseconds visible_to() const;
  const TimeWindow& window() const;
  /// Scrolls to the slice and selects it; zooms in only if it is narrower than a few pixels.
  void go_to_slice(std::size_t slice);
  /// Goes to a rank, a time or both: "r12 3.5ms", "12",
  /// "3.5 ms". Returns false if the text is invalid.
  bool go_to(const QString& place);
  /// Marks search hits in the order of slices_named() (run that on another thread) and moves to the
  /// first one in or after the visible range. Empty clears the marks.
  void show_hits(std::vector<std::uint32_t> slices);
  void next_hit();
  void previous_hit();

  // ---- selection --------------------------------------------------------------------------------
  std::optional<std::size_t> selected_slice() const;
  std::optional<TimelineArea> selected_area() const;
  void select_slice(std::optional<std::size_t> slice);
  void select_area(const std::optional<TimelineArea>& area);
  std::optional<Nanoseconds> cursor_a() const;
  std::optional<Nanoseconds> cursor_b() const;
  void set_cursors(std::optional<Nanoseconds> a, std::optional<Nanoseconds> b);

  // ---- editing ----------------------------------------------------------------------------------
  /// If editable, passes can be dragged to another position in the order of their row, and the
  /// handle of a stage (left of its row) can be dragged to slow it down.
  void set_editable(bool editable);
  /// Validates an order while it is dragged: returns an empty string if valid, else the reason.
  /// Called on the GUI thread; must return within a few milliseconds.
  void set_order_judge(std::function<QString(const OrderEdit&)> judge);

  // ---- output -----------------------------------------------------------------------------------
  /// The current content, to be painted, copied or written elsewhere.
  TimelineSnapshot snapshot();
  /// Fills the table with the visible slices.
  void fill_table(TimelineTableModel& table) const;
  /// Blocks until the view is up to date; for tests and screenshots.
  void wait_for_painters();

  QSize sizeHint() const override;
  QSize minimumSizeHint() const override;

 public Q_SLOTS:
  void zoom_in();
  void zoom_out();
  void fit_selection();
  void next_slice();
  void previous_slice();
  void follow_dependency();
  void follow_dependency_back();
  void selection_to_area();
  void mark_selection();
  void next_bubble();
  void previous_bubble();
  void toggle_critical_path();
  void toggle_pin_of_row();
  void clear_selection();

 Q_SIGNALS:
  /// -1 if there is no slice under the pointer.
  void slice_hovered(qint64 slice);
  void slice_selected(qint64 slice);
  /// A gap of a compute row, given by the slice after it, or -1.
  void bubble_hovered(qint64 slice_after);
  void bubble_selected(qint64 slice_after);
  void area_selected(const meshwright::gui::TimelineArea& area);
  void area_cleared();
  void visible_range_changed(qint64 from_ns, qint64 to_ns);
  void cursors_changed();
  /// One line of text about the item under the pointer, for the status bar and screen readers.
  void hover_text_changed(const QString& text);
  /// The user requests that `stage` take `factor` times as long (straggler). Emitted with
  /// `is_final` false while dragging, and once with true at the end.
  void stage_slowdown_requested(int stage, double factor, bool is_final);
  /// The user dropped a pass at another position in the order of its row.
  void order_edited(const meshwright::gui::OrderEdit& edit);
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
  void timerEvent(QTimerEvent* event) override;

 private:
  struct Parts;
  friend class TimelineAccessible;

  void make_font();
  void make_actions();
  void retranslate_actions();
  void tick(const char* name, bool on);
  void next_lane_order();
  void forget_what_was_chosen();
  void show_new_tracks(bool keep_range);
  void arrange();
  LaneArrangement lanes_for(int room) const;
  void refresh();
  void set_window(const TimeWindow& window);
  void reveal_row(std::size_t row);
  void select_bubble(const Bubble& bubble);
  void go_to_bubble(std::ptrdiff_t step);
  void announce_selection();
  void move_on();
  bool hold_key(int key, quint32 scan_code, bool down);
  void zoom_by(double factor, double body_x);
  void pan_by(double pixels);
  void step_slice(int step);
  void step_row(int step);
  void show_end();

  TimelineGeometry geometry_of_parts() const;
  TimelineTarget target_at(QPoint position) const;
  void hover_at(QPoint position);
  void drag_to(QPoint position);
  void end_drag(QPoint position);
  void click(QPoint position, Qt::KeyboardModifiers modifiers);
  void click_gutter(QPoint position);
  void add_stage_entries(QMenu& menu);
  void begin_press(QPoint position, Qt::MouseButton button, Qt::KeyboardModifiers modifiers);
  TimelineArea area_between(QPoint a, QPoint b) const;
  std::optional<std::size_t> handle_at(QPoint position) const;

  std::pair<QString, QString> names_of(const Lane& lane) const;
  void paint_gutter(QPainter& painter, const TimelineGeometry& geometry) const;
  void paint_ruler(QPainter& painter, const TimelineGeometry& geometry) const;
  void paint_overview(QPainter& painter, const TimelineGeometry& geometry) const;
  void paint_body(QPainter& painter, const TimelineGeometry& geometry) const;
  void paint_glide(QPainter& painter, const TimelineGeometry& geometry) const;
  void paint_overlay(QPainter& painter, const TimelineGeometry& geometry) const;
  void paint_area(QPainter& painter, const TimelineArea& area,
                  const TimelineGeometry& geometry) const;
  void paint_arrows(QPainter& painter, const TimelineGeometry& geometry) const;
  void paint_cursors(QPainter& painter, const TimelineGeometry& geometry) const;
  void paint_drag(QPainter& painter, const TimelineGeometry& geometry) const;
  void paint_tip(QPainter& painter) const;
  QRect tip_place(const QString& text) const;
  QFont tip_font() const;
  QRegion hover_region() const;
  void paint_frame(QPainter& painter, const TimelineGeometry& geometry);
  std::vector<std::size_t> visible_rows() const;
  QString tip_text() const;
  /// Screen rectangle of a slice or gap of the first tracks; empty if not visible.
  QRectF box_of(std::size_t row, Nanoseconds from, Nanoseconds to,
                const TimelineGeometry& geometry) const;

  std::unique_ptr<Parts> parts_;
};

}  // namespace meshwright::gui

Q_DECLARE_METATYPE(meshwright::gui::OrderEdit)
Q_DECLARE_METATYPE(meshwright::gui::TimelineArea)
