/// The widget: content and visible range. Navigation, painting, input and actions are in
/// timeline_view_navigation.cpp, _paint.cpp, _overlay.cpp, _input.cpp, _actions.cpp, ….
#include "gui/timeline_view/timeline_view.hpp"

#include <QEvent>
#include <QResizeEvent>
#include <algorithm>
#include <cmath>

#include "gui/timeline_view/accessible.hpp"
#include "gui/timeline_view/parts.hpp"

namespace meshwright::gui {
namespace {

constexpr int kTextPixels = 11;

/// True if two timelines are similar enough that the visible range should be kept.
bool is_about_as_long(Nanoseconds a, Nanoseconds b) {
  return a > Nanoseconds(0) && b > Nanoseconds(0) && a < b * 2 && b < a * 2;
}

}  // namespace

TimelineView::TimelineView(QWidget* parent) : QWidget(parent), parts_(std::make_unique<Parts>()) {
  register_timeline_accessibility();  // before Qt first queries the accessibility interface
  setObjectName(QStringLiteral("timeline"));
  setFocusPolicy(Qt::StrongFocus);
  setMouseTracking(true);
  setAttribute(Qt::WA_OpaquePaintEvent);
  setAccessibleName(tr("Timeline"));
  setAccessibleDescription(tr("Slices of each rank over time"));
  Parts& p = *parts_;
  p.style.colours = light_colours();
  p.placeholder = tr("Nothing to show yet");
  p.scroll_bar = new QScrollBar(Qt::Vertical, this);
  p.scroll_bar->setFocusPolicy(Qt::NoFocus);
  p.scroll_bar->hide();
  p.queue = new TimelinePaintQueue(this);
  connect(p.queue, &TimelinePaintQueue::painted, this,
          [this](const QImage& image, const TimelineScene& scene) {
            parts_->body_image = image;
            parts_->body_scene = scene;
            update();
          });
  connect(p.queue, &TimelinePaintQueue::overview_painted, this, [this](const QImage& image) {
    parts_->overview_image = image;
    update(geometry_of_parts().overview);
  });
  connect(p.scroll_bar, &QScrollBar::valueChanged, this, [this] { refresh(); });
  p.motion.setInterval(16);
  connect(&p.motion, &QTimer::timeout, this, &TimelineView::move_on);
  make_font();
  make_actions();
}

TimelineView::~TimelineView() {
  // Painters that are still running must not access a partly destroyed view.
  delete parts_->queue;
}

void TimelineView::make_font() {
  Parts& p = *parts_;
  QFont label = font();
  const double scale = devicePixelRatioF();
  label.setPixelSize(static_cast<int>(std::lround(kTextPixels * scale)));
  p.style.scale = scale;
  p.font = std::make_shared<const LabelFont>(label);
}

// ---- content ------------------------------------------------------------------------------------

void TimelineView::set_tracks(std::shared_ptr<const TimelineTracks> tracks) {
  Parts& p = *parts_;
  // If everything was visible, keep showing everything.
  const bool shows_all =
      p.tracks != nullptr && p.window.from <= Nanoseconds(0) && p.window.to >= p.tracks->end;
  const bool keep_range = p.tracks != nullptr && tracks != nullptr && p.measured == nullptr &&
                          !shows_all && is_about_as_long(p.tracks->end, tracks->end);
  p.tracks = std::move(tracks);
  p.measured = nullptr;
  p.comparison = nullptr;
  forget_what_was_chosen();
  show_new_tracks(keep_range);
}

void TimelineView::forget_what_was_chosen() {
  Parts& p = *parts_;
  p.causes = nullptr;
  p.slice.reset();
  p.measured_slice.reset();
  p.bubble.reset();
  p.bubble_index.reset();
  p.hover = {};
  p.hits.clear();
  p.order_edit.reset();
  p.pressed = {};
  if (p.drag == TimelineDrag::kOrder) p.drag = TimelineDrag::kNone;
  if (p.area) {
    p.area.reset();
    Q_EMIT area_cleared();
  }
}

void TimelineView::show_new_tracks(bool keep_range) {
  Parts& p = *parts_;
  p.gliding.clear();
  p.in_flight = p.tracks == nullptr ? nullptr : std::make_shared<InFlightCurves>(p.tracks);
  arrange();
  if (p.tracks == nullptr) {
    p.body_image = p.overview_image = QImage();
    p.body_scene.reset();
    update();
    return;
  }
  if (!keep_range) show_all();
  p.queue->request_overview(p.tracks, p.style.colours, geometry_of_parts().overview.size());
  refresh();
}

std::shared_ptr<const TimelineTracks> TimelineView::tracks() const { return parts_->tracks; }

void TimelineView::set_causes(std::shared_ptr<const TimelineCauses> causes) {
  parts_->causes = std::move(causes);
  parts_->bubble_index.reset();
  refresh();
}

void TimelineView::set_ghost(std::shared_ptr<const TimelineTracks> ghost) {
  parts_->ghost = std::move(ghost);
  refresh();
}

void TimelineView::set_placeholder(const QString& text) {
  parts_->placeholder = text;
  update();
}

// ---- appearance ---------------------------------------------------------------------------------

void TimelineView::set_theme(const TimelineColours& colours) {
  Parts& p = *parts_;
  if (p.style.colours == colours) return;
  p.style.colours = colours;
  if (p.tracks != nullptr)
    p.queue->request_overview(p.tracks, colours, geometry_of_parts().overview.size());
  refresh();
}

const TimelineColours& TimelineView::theme() const { return parts_->style.colours; }

void TimelineView::set_reduced_motion(bool reduced) { parts_->reduced_motion = reduced; }

void TimelineView::set_critical_path_shown(bool shown) {
  parts_->style.critical_path = shown;
  tick("timeline.critical-path", shown);
  refresh();
}

void TimelineView::set_arrows_shown(bool shown) {
  parts_->arrows = shown;
  update();
}

void TimelineView::set_bubble_causes_shown(bool shown) {
  parts_->style.bubble_causes = shown;
  refresh();
}

void TimelineView::set_microbatch_colours(bool shown) {
  parts_->style.microbatch_colours = shown;
  refresh();
}

void TimelineView::set_counters_shown(bool shown) {
  parts_->options.counters = shown ? LaneCounters::kAll : LaneCounters::kNone;
  parts_->counters_where_room = false;
  arrange();
  refresh();
}

void TimelineView::set_counters_where_room() {
  parts_->counters_where_room = true;
  arrange();
  refresh();
}

void TimelineView::set_held_keys(const std::array<int, 4>& keys) { parts_->held_keys = keys; }

void TimelineView::set_replicas_folded(bool folded) {
  parts_->options.fold_replicas = folded;
  tick("timeline.replicas", !folded);
  arrange();
  refresh();
}

void TimelineView::set_all_streams_shown(bool shown) {
  parts_->options.all_open = shown;
  tick("timeline.streams", shown);
  arrange();
  refresh();
}

const LaneOptions& TimelineView::lane_options() const { return parts_->options; }

void TimelineView::set_lane_order(LaneOrder order) {
  parts_->options.order = order;
  arrange();
  refresh();
}

// ---- geometry -----------------------------------------------------------------------------------

TimelineGeometry TimelineView::geometry_of_parts() const {
  using G = TimelineGeometry;
  const int bar = parts_->scroll_bar->isHidden() ? 0 : parts_->scroll_bar->sizeHint().width();
  const int right = std::max(1, width() - G::kGutter - bar);
  const int top = G::kOverview + G::kRuler;
  return {.overview = {G::kGutter, 0, right, G::kOverview},
          .ruler = {G::kGutter, G::kOverview, right, G::kRuler},
          .gutter = {0, top, G::kGutter, std::max(1, height() - top)},
          .body = {G::kGutter, top, right, std::max(1, height() - top)}};
}

/// Adds memory counters if they fit and counters were not requested, then grows the lanes to fill
/// the available height.
LaneArrangement TimelineView::lanes_for(int room) const {
  const Parts& p = *parts_;
  const auto arranged = [&](const LaneOptions& options) {
    return p.measured != nullptr ? arrange_comparison(*p.tracks, *p.measured, options)
                                 : arrange_lanes(*p.tracks, options);
  };
  constexpr int kLowCounter = 26;  // keeps the focus on the rows
  LaneOptions options = p.options;
  LaneArrangement arrangement = arranged(options);
  if (p.counters_where_room) {
    LaneOptions more = options;
    more.counters = LaneCounters::kMemory;
    more.sizes.counter = kLowCounter;
    LaneArrangement with = arranged(more);
    if (with.height <= room) arrangement = std::move(with), options = std::move(more);
  }
  if (arrangement.height > room) return arrangement;
  constexpr double kMostGrowth = 2.0, kLeastGrowth = 1.05, kFilled = 0.98;
  const double growth = std::min(kMostGrowth, room * kFilled / std::max(1, arrangement.height));
  if (growth < kLeastGrowth) return arrangement;
  for (int* size : {&options.sizes.compute, &options.sizes.stream, &options.sizes.counter,
                    &options.sizes.difference})
    *size = static_cast<int>(*size * growth);
  return arranged(options);
}

/// Recomputes the lanes and updates the scroll bar.
void TimelineView::arrange() {
  Parts& p = *parts_;
  if (p.tracks == nullptr) {
    p.arrangement = nullptr;
    p.scroll_bar->hide();
    return;
  }
  const int room = geometry_of_parts().body.height();
  p.arrangement = std::make_shared<const LaneArrangement>(lanes_for(room));
  p.hover = {};  // it refers to the previous arrangement
  p.scroll_bar->setVisible(p.arrangement->height > room);
  const TimelineGeometry g = geometry_of_parts();
  p.scroll_bar->setRange(0, std::max(0, p.arrangement->height - room));
  p.scroll_bar->setPageStep(room);
  p.scroll_bar->setSingleStep(26);
  p.scroll_bar->setGeometry(g.body.right() + 1, g.body.top(), p.scroll_bar->sizeHint().width(),
                            g.body.height());
  p.window.width = g.body.width();
}

/// Requests a new image of the current content.
void TimelineView::refresh() {
  Parts& p = *parts_;
  if (p.tracks != nullptr && p.arrangement != nullptr)
    p.queue->request(p.scene(geometry_of_parts()));
  update();
}

// ---- selection ----------------------------------------------------------------------------------

std::optional<std::size_t> TimelineView::selected_slice() const { return parts_->slice; }
std::optional<TimelineArea> TimelineView::selected_area() const { return parts_->area; }
std::optional<Nanoseconds> TimelineView::cursor_a() const { return parts_->cursor_a; }
std::optional<Nanoseconds> TimelineView::cursor_b() const { return parts_->cursor_b; }

void TimelineView::set_cursors(std::optional<Nanoseconds> a, std::optional<Nanoseconds> b) {
  parts_->cursor_a = a;
  parts_->cursor_b = b;
  update();
  Q_EMIT cursors_changed();
}

void TimelineView::select_slice(std::optional<std::size_t> slice) {
  Parts& p = *parts_;
  if (slice && (p.tracks == nullptr || *slice >= p.tracks->slice_count())) slice.reset();
  p.bubble.reset();
  if (p.slice == slice) return;
  p.slice = slice;
  p.measured_slice = slice ? p.measured_of(*slice) : std::nullopt;
  update();
  Q_EMIT slice_selected(slice ? static_cast<qint64>(*slice) : -1);
  if (slice) Q_EMIT hover_text_changed(describe_slice(*p.tracks, p.causes.get(), *slice));
  announce_selection();
}

void TimelineView::select_bubble(const Bubble& bubble) {
  Parts& p = *parts_;
  p.slice.reset();
  p.measured_slice.reset();
  p.bubble = bubble;
  update();
  Q_EMIT bubble_selected(bubble.slice_after);
  Q_EMIT hover_text_changed(describe_bubble(*p.tracks, p.causes.get(), bubble));
}

void TimelineView::select_area(const std::optional<TimelineArea>& area) {
  Parts& p = *parts_;
  if (p.area == area) return;
  p.area = area;
  update();
  if (area)
    Q_EMIT area_selected(*area);
  else
    Q_EMIT area_cleared();
}

void TimelineView::set_editable(bool editable) {
  parts_->editable = editable;
  update();
}

void TimelineView::set_order_judge(std::function<QString(const OrderEdit&)> judge) {
  parts_->judge = std::move(judge);
}

// ---- size ---------------------------------------------------------------------------------------

QSize TimelineView::sizeHint() const { return {960, 420}; }
QSize TimelineView::minimumSizeHint() const { return {320, 140}; }

void TimelineView::resizeEvent(QResizeEvent* event) {
  Parts& p = *parts_;
  if (std::abs(p.style.scale - devicePixelRatioF()) > 1e-6) make_font();
  arrange();
  if (p.tracks != nullptr)
    p.queue->request_overview(p.tracks, p.style.colours, geometry_of_parts().overview.size());
  refresh();
  QWidget::resizeEvent(event);
}

void TimelineView::changeEvent(QEvent* event) {
  if (event->type() == QEvent::FontChange) {
    make_font();
    refresh();
  }
  if (event->type() == QEvent::LanguageChange) retranslate_actions();
  QWidget::changeEvent(event);
}

}  // namespace meshwright::gui
