#include "gui/screens/timeline_prompt.hpp"

#include <QShortcut>

#include "gui/session/workbench.hpp"
#include "gui/timeline_view/timeline_view.hpp"

namespace meshwright::gui {

TimelinePrompt::TimelinePrompt(TimelineView& view, Workbench& workbench)
    : view_(view), workbench_(workbench) {
  setClearButtonEnabled(true);
  hide();
  connect(this, &QLineEdit::returnPressed, this, &TimelinePrompt::take_answer);
  auto* escape = new QShortcut(Qt::Key_Escape, this, nullptr, nullptr, Qt::WidgetShortcut);
  connect(escape, &QShortcut::activated, this, &TimelinePrompt::leave);
  connect(&view, &TimelineView::search_requested, this, [this] { ask_for(false); });
  connect(&view, &TimelineView::go_to_requested, this, [this] { ask_for(true); });
}

void TimelinePrompt::leave() {
  hide();
  view_.setFocus();
}

void TimelinePrompt::ask_for(bool is_place) {
  is_for_place_ = is_place;
  clear();
  setPlaceholderText(is_place ? tr("Rank, time or both, for example r12 3.5ms")
                              : tr("Part of a slice name, for example F7 or all-reduce"));
  setAccessibleName(placeholderText());
  show();
  setFocus(Qt::ShortcutFocusReason);
}

void TimelinePrompt::take_answer() {
  if (!is_for_place_)
    search(text().trimmed());
  else if (!view_.navigation().go_to(text()))
    return workbench_.log(tr("Not found: %1").arg(text()));
  leave();
}

void TimelinePrompt::search(const QString& text) {
  const auto tracks = view_.tracks();
  if (tracks == nullptr || text.isEmpty()) return view_.navigation().show_hits({});
  workbench_.jobs().start<std::vector<std::uint32_t>>(
      {tr("Search"), "timeline.search", false}, this,
      [tracks, wanted = text.toStdString()](const JobContext&) {
        return slices_named(*tracks, wanted);
      },
      [this, tracks](const std::vector<std::uint32_t>& found) {
        if (view_.tracks() != tracks) return;  // superseded by another timeline
        view_.navigation().show_hits(found);
        workbench_.log(tr("%n match(es)", nullptr, static_cast<int>(found.size())));
      });
}

}  // namespace meshwright::gui
