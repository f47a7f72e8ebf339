/// Lines with the time of day; the last few thousand.
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
