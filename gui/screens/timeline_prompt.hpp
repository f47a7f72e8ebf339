/// One line of input for a timeline: a place to go to or a name to search for. Hidden until the
/// view asks for it.
#pragma once

#include <QLineEdit>

namespace meshwright::gui {

class TimelineView;
class Workbench;

class TimelinePrompt : public QLineEdit {
  Q_OBJECT
 public:
  TimelinePrompt(TimelineView& view, Workbench& workbench);

 private:
  void ask_for(bool is_place);
  void take_answer();
  void search(const QString& text);
  void leave();

  TimelineView& view_;
  Workbench& workbench_;
  bool is_for_place_ = false;  ///< rank or time, not a search
};

}  // namespace meshwright::gui
