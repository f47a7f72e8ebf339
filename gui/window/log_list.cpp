#include "gui/window/log_list.hpp"

#include <QTime>

namespace meshwright::gui {

LogList::LogList(QWidget* parent) : QPlainTextEdit(parent) {
  constexpr int kLinesKept = 5000;
  setReadOnly(true);
  setMaximumBlockCount(kLinesKept);
  setFrameShape(QFrame::NoFrame);
  setTabChangesFocus(true);
  setAccessibleName(tr("Log"));
}

void LogList::add(const QString& line) {
  appendPlainText(QTime::currentTime().toString("HH:mm:ss  ") + line);
}

}  // namespace meshwright::gui
