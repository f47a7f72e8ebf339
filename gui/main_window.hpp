/// The window: menus, screens in the centre, docks around them.
#pragma once

#include <QMainWindow>

namespace meshwright::gui {

class MainWindow : public QMainWindow {
  Q_OBJECT
 public:
  MainWindow();
};

}  // namespace meshwright::gui
