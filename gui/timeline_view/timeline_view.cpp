#include "gui/timeline_view/timeline_view.hpp"

#include <QPainter>
#include <QResizeEvent>
#include <QSignalBlocker>
#include <cmath>

#include "gui/timeline_view/accessible.hpp"
#include "gui/timeline_view/header.hpp"
#include "gui/timeline_view/overlay.hpp"
#include "gui/timeline_view/parts.hpp"
#include "gui/timeline_view/table_model.hpp"

namespace meshwright::gui {
namespace {

/// True if two timelines are similar enough that the visible range should be kept.
bool is_about_as_long(Nanoseconds a, Nanoseconds b) {
  return a > Nanoseconds(0) && b > Nanoseconds(0) && a < b * 2 && b < a * 2;
}

}  // namespace

TimelineView::TimelineView(QWidget* parent)
    : QWidget(parent), parts_(std::make_unique<Parts>(*this, state_)) {
  register_timeline_accessibility();  // before Qt first queries the accessibility interface
  setObjectName(QStringLiteral("timeline"));
  setFocusPolicy(Qt::StrongFocus);
  setMouseTracking(true);
  setAttribute(Qt::WA_OpaquePaintEvent);
  setAccessibleName(tr("Timeline"));
  setAccessibleDescription(tr("Slices of each rank over time"));
  parts_->placeholder = tr("Nothing to show yet");
  parts_->scroll_bar.setFocusPolicy(Qt::NoFocus);
  parts_->scroll_bar.hide();
  state_.appearance.set_font(font(), devicePixelRatioF());
  connect_state();
  connect_parts();
  arrange();
}

TimelineView::~TimelineView() = default;

void TimelineView::connect_state() {
  const auto repaint = [this] { update(); };
  const auto refresh_rows = [this] { refresh(); };
  connect(&state_.appearance, &TimelineAppearance::changed, this, refresh_rows);
  connect(&state_.appearance, &TimelineAppearance::colors_changed, this,
          &TimelineView::request_overview);
  connect(&state_.viewport, &TimelineViewport::visible_range_changed, this, [this] {
    parts_->pointer.hover_again();
    refresh();
  });
  connect(&state_.lanes, &TimelineLanes::arranged, this, [this] {
    parts_->pointer.forget_hovered();
    fit_geometry();
    refresh();
  });
  connect(&state_.lanes, &TimelineLanes::scrolled, this, [this] {
    parts_->scroll_bar.setValue(state_.lanes.scroll());
    parts_->pointer.hover_again();
    refresh();
  });
  connect(&state_.editing, &TimelineEditing::editable_changed, this, repaint);
  connect(&state_.selection, &TimelineSelection::changed, this, repaint);
  connect(&state_.selection, &TimelineSelection::described, this,
          &TimelineView::hover_text_changed);
  connect(&state_.selection, &TimelineSelection::slice_selected, this, [this](qint64 slice) {
    if (slice >= 0) announce_slice(*this, static_cast<std::size_t>(slice));
  });
}

void TimelineView::connect_parts() {
  Parts& p = *parts_;
  connect(&state_.selection, &TimelineSelection::cleared, this, [&p] { p.pointer.cancel_drag(); });
  connect(&p.pointer, &TimelinePointer::slice_hovered, this, &TimelineView::slice_hovered);
  connect(&p.pointer, &TimelinePointer::described, this, &TimelineView::hover_text_changed);
  connect(&p.pointer, &TimelinePointer::changed, this, [this] { update(); });
  connect(&p.pointer, &TimelinePointer::shape_changed, this,
          [this](Qt::CursorShape shape) { setCursor(shape); });
  connect(&p.actions, &TimelineActions::search_requested, this, &TimelineView::search_requested);
  connect(&p.actions, &TimelineActions::go_to_requested, this, &TimelineView::go_to_requested);
  connect(&p.keys, &HeldKeys::zoomed, this, [this](double factor) {
    const auto& at = parts_->pointer.position();
    state_.viewport.zoom_by(
        factor, at ? at->x() - TimelineGeometry::kGutter : state_.viewport.window().width / 2.0);
  });
  connect(&p.keys, &HeldKeys::panned, this,
          [this](double share) { state_.viewport.pan_by(share * state_.viewport.window().width); });
  connect(&p.glide, &TimelineGlide::advanced, this, [this] { update(state_.geometry.body); });
  connect(&p.images, &TimelineImages::body_painted, this, [this] { update(); });
  connect(&p.images, &TimelineImages::overview_painted, this,
          [this] { update(state_.geometry.overview); });
  connect(&p.scroll_bar, &QScrollBar::valueChanged, &state_.lanes, &TimelineLanes::scroll_to);
}

// ---- content ------------------------------------------------------------------------------------

void TimelineView::set_tracks(std::shared_ptr<const TimelineTracks> tracks) {
  const TimelineContent& old = state_.content;
  const bool keep_range = old.tracks != nullptr && tracks != nullptr && !old.is_comparison() &&
                          !state_.viewport.shows_all() &&
                          is_about_as_long(old.tracks->end, tracks->end);
  state_.content.tracks = std::move(tracks);
  state_.content.measured = nullptr;
  state_.content.comparison = nullptr;
  show_new_tracks(keep_range);
}

void TimelineView::set_comparison(std::shared_ptr<const TimelineTracks> predicted,
                                  std::shared_ptr<const TimelineTracks> measured,
                                  std::shared_ptr<const TimelineComparison> pairs) {
  state_.content.tracks = std::move(predicted);
  state_.content.measured = std::move(measured);
  state_.content.comparison = std::move(pairs);
  show_new_tracks(false);
}

/// Nothing refers to the previous tracks afterwards.
void TimelineView::show_new_tracks(bool keep_range) {
  parts_->is_changing_tracks = true;
  TimelineContent& content = state_.content;
  content.causes = nullptr;
  content.in_flight =
      content.tracks == nullptr ? nullptr : std::make_shared<InFlightCurves>(content.tracks);
  parts_->pointer.forget_tracks();
  parts_->glide.stop();
  state_.navigation.forget_bubble();
  state_.selection.forget();
  arrange();
  if (content.tracks == nullptr) parts_->images.clear();
  if (!keep_range) state_.viewport.show_all();
  request_overview();
  parts_->is_changing_tracks = false;
  refresh();
}

void TimelineView::set_causes(std::shared_ptr<const TimelineCauses> causes) {
  state_.content.causes = std::move(causes);
  state_.navigation.forget_bubble();
  refresh();
}

void TimelineView::set_ghost(std::shared_ptr<const TimelineTracks> ghost) {
  state_.content.ghost = std::move(ghost);
  refresh();
}

void TimelineView::set_pairs(std::shared_ptr<const TimelineComparison> pairs) {
  if (!state_.content.is_comparison()) return;
  state_.content.comparison = std::move(pairs);
  refresh();
}

void TimelineView::set_morphed(std::shared_ptr<const TimelineTracks> predicted) {
  if (!state_.content.is_comparison()) return;
  state_.content.tracks = std::move(predicted);
  state_.content.in_flight = std::make_shared<InFlightCurves>(state_.content.tracks);
  refresh();
}

void TimelineView::set_placeholder(const QString& text) {
  parts_->placeholder = text;
  update();
}

void TimelineView::glide_from(const TimelineTracks& before, const TimeWindow& window) {
  const TimelineContent& content = state_.content;
  parts_->glide.stop();
  if (state_.appearance.has_reduced_motion() || content.tracks == nullptr ||
      content.is_comparison() || !isVisible())
    return;
  parts_->glide.start(gliding_slices(before, window, *content.tracks, state_.viewport.window()));
}

bool TimelineView::is_gliding() const { return parts_->glide.is_running(); }

void TimelineView::set_held_keys(const std::array<int, 4>& keys) { parts_->keys.set_keys(keys); }

// ---- geometry and images ------------------------------------------------------------------------

/// Arranges the lanes for the current height.
void TimelineView::arrange() { state_.lanes.arrange(timeline_geometry(size(), 0).body.height()); }

/// The lanes decide whether there is a scroll bar, and this how wide the rows are.
void TimelineView::fit_geometry() {
  const TimelineLanes& lanes = state_.lanes;
  QScrollBar& bar = parts_->scroll_bar;
  const bool scrolls = lanes.most_scroll() > 0;
  bar.setVisible(scrolls);
  const int width = bar.sizeHint().width();
  state_.geometry = timeline_geometry(size(), scrolls ? width : 0);
  const QRect& body = state_.geometry.body;
  state_.viewport.set_width(body.width());
  if (state_.is_empty()) return;
  const QSignalBlocker quiet(bar);  // the lanes know where they are
  constexpr int kLine = 26;
  bar.setRange(0, lanes.most_scroll());
  bar.setPageStep(lanes.height());
  bar.setSingleStep(kLine);
  bar.setValue(lanes.scroll());
  bar.setGeometry(body.right() + 1, body.top(), width, body.height());
}

/// Requests a new image of the current content.
void TimelineView::refresh() {
  if (!state_.is_empty() && !parts_->is_changing_tracks) parts_->images.request(state_.scene());
  update();
}

void TimelineView::request_overview() {
  if (state_.content.tracks != nullptr)
    parts_->images.request_overview(state_.content.tracks, state_.appearance.colors(),
                                    state_.geometry.overview.size());
}

void TimelineView::wait_for_painters() { parts_->images.wait(); }

void TimelineView::resizeEvent(QResizeEvent* event) {
  if (std::abs(state_.appearance.style().scale - devicePixelRatioF()) > 1e-6)
    state_.appearance.set_font(font(), devicePixelRatioF());
  arrange();
  request_overview();
  QWidget::resizeEvent(event);
}

void TimelineView::changeEvent(QEvent* event) {
  if (event->type() == QEvent::FontChange) state_.appearance.set_font(font(), devicePixelRatioF());
  if (event->type() == QEvent::LanguageChange) parts_->actions.retranslate();
  QWidget::changeEvent(event);
}

// ---- painting -----------------------------------------------------------------------------------

void TimelineView::paintEvent(QPaintEvent* event) {
  const Parts& p = *parts_;
  const TimelineColors& colors = state_.appearance.colors();
  QPainter painter(this);
  painter.setClipRegion(event->region());
  const TimelineFrame frame = state_.frame();
  const TimelineGeometry& geometry = frame.geometry;
  QRegion bare(rect());
  if (!p.glide.is_running() && p.images.is_current(frame))
    bare -= geometry.body;  // avoid painting pixels twice
  for (const QRect& part : bare) painter.fillRect(part, color(colors.background));
  if (state_.is_empty()) {
    painter.setPen(color(colors.faint_text));
    painter.drawText(rect(), Qt::AlignCenter | Qt::TextWordWrap, p.placeholder);
    return;
  }
  if (p.glide.is_running())
    p.glide.paint(painter, frame, colors);
  else
    p.images.paint_body(painter, frame);
  // A mouse move repaints only a few strips of the body, not names and overview.
  if (event->region().intersects(geometry.gutter)) paint_gutter(painter, state_, font());
  if (event->region().intersects(geometry.overview.united(geometry.ruler))) {
    paint_overview_strip(painter, state_, p.images.overview(), width());
    paint_ruler(painter, state_, font());
  }
  paint_overlay(painter, {.state = state_, .pointer = p.pointer, .font = font(), .size = size()});
  if (hasFocus()) {
    painter.setPen(QPen(palette().color(QPalette::Highlight), 1));
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(rect().adjusted(0, 0, -1, -1));
  }
}

TimelineSnapshot TimelineView::snapshot() const {
  TimelineSnapshot taken{.scene = state_.scene(),
                         .frame = QPicture(),
                         .size = size(),
                         .body = state_.geometry.body.topLeft(),
                         .font = font(),
                         .dots_per_inch = logicalDpiX(),
                         .rows = {},
                         .selected = state_.selection.area()};
  QPainter painter(&taken.frame);
  if (state_.is_empty()) {
    taken.scene.content.tracks = nullptr;
    painter.setPen(color(state_.appearance.colors().faint_text));
    painter.drawText(rect(), Qt::AlignCenter | Qt::TextWordWrap, parts_->placeholder);
    return taken;
  }
  taken.rows = rows_with_lane(state_.frame());
  paint_gutter(painter, state_, font());
  paint_overview_strip(painter, state_, parts_->images.overview(), width());
  paint_ruler(painter, state_, font());
  paint_overlay(painter, {.state = state_,
                          .pointer = parts_->pointer,
                          .font = font(),
                          .size = size(),
                          .follows_pointer = false});
  return taken;
}

void TimelineView::fill_table(TimelineTableModel& table) const {
  table.show(state_.content.tracks, state_.content.causes, rows_with_lane(state_.frame()),
             state_.viewport.visible_from(), state_.viewport.visible_to());
}

}  // namespace meshwright::gui
