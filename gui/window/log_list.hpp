/// A log with the time of day in front of each line; keeps the last few thousand lines.
#pragma once

#include <QPlainTextEdit>

namespace meshwright::gui {

class LogList : public QPlainTextEdit {
  Q_OBJECT
 public:
  explicit LogList(QWidget* parent = nullptr);
  void add(const QString& line);
};

}  // namespace meshwright::gui
