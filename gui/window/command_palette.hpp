/// Finds and triggers any action by typing part of its name.
#pragma once

#include <QDialog>

class QLineEdit;
class QTreeWidget;

namespace meshwright::gui {

class ActionSet;

class CommandPalette : public QDialog {
  Q_OBJECT
 public:
  explicit CommandPalette(ActionSet& actions, QWidget* parent = nullptr);

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void filter(const QString& text);
  void run_chosen();
  ActionSet& actions_;
  QLineEdit* text_;
  QTreeWidget* list_;
};

}  // namespace meshwright::gui
