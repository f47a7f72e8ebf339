/// The actions of a TimelineView, as QActions for menus, the command palette and tests.
#include <algorithm>
#include <cmath>

#include "gui/timeline_view/parts.hpp"
#include "gui/timeline_view/timeline_view.hpp"

namespace meshwright::gui {
namespace {

struct ActionText {
  const char* name;  ///< objectName: stable, for tests and settings
  const char* text;
  const char* shortcut;
  bool is_switch = false;
};

constexpr std::array<ActionText, 29> kActions{{
    {"timeline.zoom-in", QT_TRANSLATE_NOOP("meshwright::gui::TimelineView", "Zoom in (W)"), "+"},
    {"timeline.zoom-out", QT_TRANSLATE_NOOP("meshwright::gui::TimelineView", "Zoom out (S)"), "-"},
    {"timeline.pan-left", QT_TRANSLATE_NOOP("meshwright::gui::TimelineView", "Pan left (A)"),
     "Ctrl+Left"},
    {"timeline.pan-right", QT_TRANSLATE_NOOP("meshwright::gui::TimelineView", "Pan right (D)"),
     "Ctrl+Right"},
    {"timeline.all", QT_TRANSLATE_NOOP("meshwright::gui::TimelineView", "Show all"), "Home"},
    {"timeline.end", QT_TRANSLATE_NOOP("meshwright::gui::TimelineView", "Go to end"), "End"},
    {"timeline.fit",
     QT_TRANSLATE_NOOP("meshwright::gui::TimelineView", "Center selection, then zoom to fit"), "F"},
    {"timeline.next", QT_TRANSLATE_NOOP("meshwright::gui::TimelineView", "Next slice in row"), "."},
    {"timeline.previous",
     QT_TRANSLATE_NOOP("meshwright::gui::TimelineView", "Previous slice in row"), ","},
    {"timeline.follow",
     QT_TRANSLATE_NOOP("meshwright::gui::TimelineView", "Follow dependency forward"), "]"},
    {"timeline.follow-back",
     QT_TRANSLATE_NOOP("meshwright::gui::TimelineView", "Follow dependency back"), "["},
    {"timeline.area",
     QT_TRANSLATE_NOOP("meshwright::gui::TimelineView", "Convert selection to area"), "R"},
    {"timeline.mark",
     QT_TRANSLATE_NOOP("meshwright::gui::TimelineView", "Set cursors to selection"), "M"},
    {"timeline.next-hit", QT_TRANSLATE_NOOP("meshwright::gui::TimelineView", "Next match"),
     "Return"},
    {"timeline.previous-hit", QT_TRANSLATE_NOOP("meshwright::gui::TimelineView", "Previous match"),
     "Shift+Return"},
    {"timeline.next-bubble",
     QT_TRANSLATE_NOOP("meshwright::gui::TimelineView", "Next bubble (largest first)"), "B"},
    {"timeline.previous-bubble",
     QT_TRANSLATE_NOOP("meshwright::gui::TimelineView", "Previous bubble"), "Shift+B"},
    {"timeline.critical-path", QT_TRANSLATE_NOOP("meshwright::gui::TimelineView", "Critical path"),
     "C", true},
    {"timeline.search", QT_TRANSLATE_NOOP("meshwright::gui::TimelineView", "Search"), "/"},
    {"timeline.go-to", QT_TRANSLATE_NOOP("meshwright::gui::TimelineView", "Go to rank or time"),
     "G"},
    {"timeline.pin", QT_TRANSLATE_NOOP("meshwright::gui::TimelineView", "Pin or unpin row"), "P"},
    {"timeline.order",
     QT_TRANSLATE_NOOP("meshwright::gui::TimelineView",
                       "Sort ranks by number, pipeline rank or busy time"),
     "O"},
    {"timeline.replicas", QT_TRANSLATE_NOOP("meshwright::gui::TimelineView", "Show all replicas"),
     "U", true},
    {"timeline.streams",
     QT_TRANSLATE_NOOP("meshwright::gui::TimelineView", "Show streams of all ranks"), "E", true},
    {"timeline.row-down", QT_TRANSLATE_NOOP("meshwright::gui::TimelineView", "Slice in next row"),
     "Down"},
    {"timeline.row-up", QT_TRANSLATE_NOOP("meshwright::gui::TimelineView", "Slice in previous row"),
     "Up"},
    {"timeline.page-down", QT_TRANSLATE_NOOP("meshwright::gui::TimelineView", "Page down"),
     "PgDown"},
    {"timeline.page-up", QT_TRANSLATE_NOOP("meshwright::gui::TimelineView", "Page up"), "PgUp"},
    {"timeline.clear", QT_TRANSLATE_NOOP("meshwright::gui::TimelineView", "Clear selection"),
     "Esc"},
}};

}  // namespace

void TimelineView::make_actions() {
  Parts& p = *parts_;
  const auto pan = [this](double part) {
    return [this, part] { pan_by(part * parts_->window.width); };
  };
  const auto page = [this](int pages) {
    return [this, pages] {
      parts_->scroll_bar->setValue(parts_->scroll() + pages * parts_->scroll_bar->pageStep());
    };
  };
  const auto row = [this](int step) { return [this, step] { step_row(step); }; };
  const std::array<std::function<void()>, kActions.size()> work{
      [this] { zoom_in(); },
      [this] { zoom_out(); },
      pan(-0.25),
      pan(0.25),
      [this] { show_all(); },
      [this] { show_end(); },
      [this] { fit_selection(); },
      [this] { next_slice(); },
      [this] { previous_slice(); },
      [this] { follow_dependency(); },
      [this] { follow_dependency_back(); },
      [this] { selection_to_area(); },
      [this] { mark_selection(); },
      [this] { next_hit(); },
      [this] { previous_hit(); },
      [this] { next_bubble(); },
      [this] { previous_bubble(); },
      [this] { toggle_critical_path(); },
      [this] { Q_EMIT search_requested(); },
      [this] { Q_EMIT go_to_requested(); },
      [this] { toggle_pin_of_row(); },
      [this] { next_lane_order(); },
      [this] { set_replicas_folded(!parts_->options.fold_replicas); },
      [this] { set_all_streams_shown(!parts_->options.all_open); },
      row(1),
      row(-1),
      page(1),
      page(-1),
      [this] { clear_selection(); },
  };
  for (std::size_t i = 0; i < kActions.size(); ++i) {
    auto* action = new QAction(this);
    action->setObjectName(QLatin1String(kActions[i].name));
    action->setShortcut(QKeySequence(QLatin1String(kActions[i].shortcut)));
    action->setShortcutContext(Qt::WidgetShortcut);
    action->setCheckable(kActions[i].is_switch);
    connect(action, &QAction::triggered, this, work[i]);
    addAction(action);
  }
  p.motion.setTimerType(Qt::PreciseTimer);
  retranslate_actions();
}

/// Updates the check mark of an action, however its state was changed.
void TimelineView::tick(const char* name, bool on) {
  for (QAction* action : actions())
    if (action->objectName() == QLatin1String(name)) action->setChecked(on);
}

void TimelineView::next_lane_order() {
  constexpr int kOrders = 3;
  set_lane_order(static_cast<LaneOrder>((static_cast<int>(parts_->options.order) + 1) % kOrders));
}

void TimelineView::retranslate_actions() {
  const QList<QAction*> all = actions();
  for (std::size_t i = 0; i < kActions.size() && static_cast<qsizetype>(i) < all.size(); ++i)
    all[static_cast<qsizetype>(i)]->setText(tr(kActions[i].text));
}

// ---- actions ------------------------------------------------------------------------------------

void TimelineView::zoom_in() { zoom_by(0.7, parts_->window.width / 2.0); }
void TimelineView::zoom_out() { zoom_by(1 / 0.7, parts_->window.width / 2.0); }

void TimelineView::show_end() {
  const Parts& p = *parts_;
  if (p.tracks == nullptr) return;
  set_window(panned(p.window, p.tracks->end - p.window.to + p.window.span() / 50, p.tracks->end));
}

/// Centers the selection; if it is centered already, zooms to fit it.
void TimelineView::fit_selection() {
  Parts& p = *parts_;
  if (p.tracks == nullptr) return;
  Nanoseconds from, to;
  if (p.slice) {
    from = p.tracks->start_of(*p.slice), to = p.tracks->end_of(*p.slice);
  } else if (p.bubble) {
    from = p.bubble->from, to = p.bubble->to;
  } else if (p.area) {
    from = p.area->from, to = p.area->to;
  } else {
    show_all();
    return;
  }
  const Nanoseconds middle = from + (to - from) / 2, half = p.window.span() / 2;
  const bool is_centred = std::abs((p.window.from + half - middle).value) <=
                          std::max<std::int64_t>(1, p.window.span().value / 200);
  if (is_centred || to - from > p.window.span())
    show_range(from - (to - from) * 2 - Nanoseconds(20), to + (to - from) * 2 + Nanoseconds(20));
  else
    show_range(middle - half, middle + half);
}

void TimelineView::step_slice(int step) {
  const Parts& p = *parts_;
  if (p.tracks == nullptr || p.tracks->slice_count() == 0) return;
  if (!p.slice) {
    // Start with the first visible slice.
    for (const Lane& lane : p.arrangement->lanes) {
      if (lane.kind != LaneKind::kSlices || lane.is_measured) continue;
      const auto row = static_cast<std::size_t>(lane.row);
      const std::size_t first = p.tracks->first_ending_after(row, p.window.from);
      if (first >= p.tracks->row_begin[row + 1]) continue;
      go_to_slice(first);
      return;
    }
    return;
  }
  const std::size_t row = p.tracks->row_of(*p.slice);
  if (step > 0 ? *p.slice + 1 < p.tracks->row_begin[row + 1] : *p.slice > p.tracks->row_begin[row])
    go_to_slice(step > 0 ? *p.slice + 1 : *p.slice - 1);
}
void TimelineView::next_slice() { step_slice(1); }
void TimelineView::previous_slice() { step_slice(-1); }

/// Selects the slice at the same time in the next lane that has slices.
void TimelineView::step_row(int step) {
  const Parts& p = *parts_;
  if (p.tracks == nullptr) return;
  if (!p.slice) {
    step_slice(1);
    return;
  }
  const auto& lanes = p.arrangement->lanes;
  const auto own = static_cast<std::int32_t>(p.tracks->row_of(*p.slice));
  const Nanoseconds at = p.tracks->start_of(*p.slice) + p.tracks->duration_of(*p.slice) / 2;
  std::ptrdiff_t index = 0;
  const auto count = static_cast<std::ptrdiff_t>(lanes.size());
  const auto is_row = [&](std::ptrdiff_t i) {
    const Lane& lane = lanes[static_cast<std::size_t>(i)];
    return lane.kind == LaneKind::kSlices && !lane.is_measured && !lane.is_pinned;
  };
  while (index < count && !(is_row(index) && lanes[static_cast<std::size_t>(index)].row == own))
    ++index;
  for (index += step; index >= 0 && index < count; index += step) {
    if (!is_row(index)) continue;
    const auto row = static_cast<std::size_t>(lanes[static_cast<std::size_t>(index)].row);
    const std::size_t end = p.tracks->row_begin[row + 1];
    std::size_t slice = p.tracks->first_ending_after(row, at);
    if (slice >= end && end > p.tracks->row_begin[row]) slice = end - 1;
    if (slice >= end) continue;
    go_to_slice(slice);
    return;
  }
}

void TimelineView::follow_dependency() {
  const Parts& p = *parts_;
  if (!p.slice || p.causes == nullptr) return;
  std::uint32_t next = kNoSlice;
  for (const std::uint32_t after : p.causes->after_of(*p.slice))
    if (next == kNoSlice || p.causes->binding[after] == *p.slice) next = after;
  if (next != kNoSlice) go_to_slice(next);
}

void TimelineView::follow_dependency_back() {
  const Parts& p = *parts_;
  if (p.causes == nullptr) return;
  std::size_t slice = p.tracks->slice_count();
  if (p.slice) slice = *p.slice;
  if (p.bubble && p.bubble->slice_after >= 0)
    slice = static_cast<std::size_t>(p.bubble->slice_after);
  if (slice < p.causes->binding.size() && p.causes->binding[slice] != kNoSlice)
    go_to_slice(p.causes->binding[slice]);
}

void TimelineView::selection_to_area() {
  const Parts& p = *parts_;
  if (p.slice)
    select_area(TimelineArea{.rows = {p.tracks->row_of(*p.slice)},
                             .from = p.tracks->start_of(*p.slice),
                             .to = p.tracks->end_of(*p.slice)});
  else if (p.bubble)
    select_area(TimelineArea{.rows = {p.bubble->row}, .from = p.bubble->from, .to = p.bubble->to});
}

void TimelineView::mark_selection() {
  const Parts& p = *parts_;
  if (p.slice)
    set_cursors(p.tracks->start_of(*p.slice), p.tracks->end_of(*p.slice));
  else if (p.bubble)
    set_cursors(p.bubble->from, p.bubble->to);
  else if (p.area)
    set_cursors(p.area->from, p.area->to);
}

void TimelineView::go_to_bubble(std::ptrdiff_t step) {
  Parts& p = *parts_;
  if (p.causes == nullptr || p.causes->bubbles.empty()) return;
  const auto count = static_cast<std::ptrdiff_t>(p.causes->bubbles.size());
  std::ptrdiff_t index =
      p.bubble_index ? static_cast<std::ptrdiff_t>(*p.bubble_index) : (step > 0 ? -1 : 0);
  for (std::ptrdiff_t tries = 0; tries < count; ++tries) {
    index = ((index + step) % count + count) % count;
    const Bubble& bubble = p.causes->bubbles[static_cast<std::size_t>(index)];
    if (p.options.fold_replicas && p.tracks->rows[bubble.row].replica > 0) continue;
    p.bubble_index = static_cast<std::size_t>(index);
    reveal_row(bubble.row);
    const Nanoseconds length = bubble.to - bubble.from;
    if (bubble.from < p.window.from || bubble.to > p.window.to || length * 50 < p.window.span())
      show_range(bubble.from - length * 2, bubble.to + length * 2);
    select_bubble(bubble);
    refresh();
    return;
  }
}
void TimelineView::next_bubble() { go_to_bubble(1); }
void TimelineView::previous_bubble() { go_to_bubble(-1); }

void TimelineView::toggle_critical_path() { set_critical_path_shown(!parts_->style.critical_path); }

void TimelineView::toggle_pin_of_row() {
  Parts& p = *parts_;
  std::optional<std::size_t> row;
  if (p.slice)
    row = p.tracks->row_of(*p.slice);
  else if (p.hover.lane && !p.arrangement->lanes[*p.hover.lane].is_measured)
    row = static_cast<std::size_t>(p.arrangement->lanes[*p.hover.lane].row);
  if (!row) return;
  const auto at = std::find(p.options.pinned.begin(), p.options.pinned.end(), *row);
  if (at == p.options.pinned.end())
    p.options.pinned.push_back(*row);
  else
    p.options.pinned.erase(at);
  arrange();
  refresh();
}

void TimelineView::clear_selection() {
  Parts& p = *parts_;
  p.bubble.reset();
  p.hits.clear();
  p.drag = TimelineDrag::kNone;
  p.order_edit.reset();
  select_slice(std::nullopt);
  select_area(std::nullopt);
  update();
}

}  // namespace meshwright::gui
