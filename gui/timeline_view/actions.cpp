#include "gui/timeline_view/actions.hpp"

#include <QAction>
#include <QKeySequence>
#include <array>
#include <functional>

#include "gui/timeline_view/pointer.hpp"
#include "gui/timeline_view/state.hpp"
#include "gui/timeline_view/words.hpp"

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

TimelineActions::TimelineActions(QWidget& view, TimelineState& state,
                                 const TimelinePointer& pointer)
    : view_(view), state_(state), pointer_(pointer) {
  TimelineNavigation& navigation = state.navigation;
  TimelineViewport& viewport = state.viewport;
  TimelineLanes& lanes = state.lanes;
  TimelineSelection& selection = state.selection;
  constexpr double kPan = 0.25;
  const std::array<std::function<void()>, kActions.size()> work{
      [&] { viewport.zoom_in(); },
      [&] { viewport.zoom_out(); },
      [&] { viewport.pan_by(-kPan * viewport.window().width); },
      [&] { viewport.pan_by(kPan * viewport.window().width); },
      [&] { viewport.show_all(); },
      [&] { viewport.show_end(); },
      [&] { navigation.fit_selection(); },
      [&] { navigation.next_slice(); },
      [&] { navigation.previous_slice(); },
      [&] { navigation.follow_dependency(); },
      [&] { navigation.follow_dependency_back(); },
      [&] { selection.select_area_of_selection(); },
      [&] { selection.set_cursors_to_selection(); },
      [&] { navigation.next_hit(); },
      [&] { navigation.previous_hit(); },
      [&] { navigation.next_bubble(); },
      [&] { navigation.previous_bubble(); },
      [&] { state.appearance.toggle_critical_path(); },
      [this] { Q_EMIT search_requested(); },
      [this] { Q_EMIT go_to_requested(); },
      [this] { pin_row(); },
      [&] { lanes.use_next_order(); },
      [&] { lanes.set_replicas_folded(!lanes.options().fold_replicas); },
      [&] { lanes.set_all_streams_shown(!lanes.options().all_open); },
      [&] { navigation.next_row(); },
      [&] { navigation.previous_row(); },
      [&] { lanes.scroll_by_pages(1); },
      [&] { lanes.scroll_by_pages(-1); },
      [&] { selection.clear(); },
  };
  for (std::size_t i = 0; i < kActions.size(); ++i) {
    auto* action = new QAction(&view);
    action->setObjectName(QLatin1String(kActions[i].name));
    action->setShortcut(QKeySequence(QLatin1String(kActions[i].shortcut)));
    action->setShortcutContext(Qt::WidgetShortcut);
    action->setCheckable(kActions[i].is_switch);
    connect(action, &QAction::triggered, this, work[i]);
    view.addAction(action);
  }
  connect(&state.appearance, &TimelineAppearance::changed, this,
          &TimelineActions::update_check_marks);
  connect(&lanes, &TimelineLanes::arranged, this, &TimelineActions::update_check_marks);
  update_check_marks();
  retranslate();
}

void TimelineActions::retranslate() {
  const QList<QAction*> all = view_.actions();
  for (std::size_t i = 0; i < kActions.size() && static_cast<qsizetype>(i) < all.size(); ++i)
    all[static_cast<qsizetype>(i)]->setText(TimelineText::tr(kActions[i].text));
}

void TimelineActions::update_check_marks() {
  for (QAction* action : view_.actions()) {
    const QString name = action->objectName();
    if (name == QLatin1String("timeline.critical-path"))
      action->setChecked(state_.appearance.style().critical_path);
    if (name == QLatin1String("timeline.replicas"))
      action->setChecked(!state_.lanes.options().fold_replicas);
    if (name == QLatin1String("timeline.streams"))
      action->setChecked(state_.lanes.options().all_open);
  }
}

/// Pins or unpins the row of the selected slice, else the row under the pointer.
void TimelineActions::pin_row() {
  const auto slice = state_.selection.slice();
  const std::optional<std::size_t> row =
      slice ? state_.content.tracks->row_of(*slice) : pointer_.hovered_row();
  if (row) state_.lanes.toggle_pin(*row);
}

}  // namespace meshwright::gui
