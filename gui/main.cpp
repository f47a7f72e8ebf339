// meshwright-gui [FILE...] [--screenshot OUT.png]
#include <QApplication>

#include "gui/main_window.hpp"

int main(int argc, char** argv) {
  QApplication application(argc, argv);
  meshwright::gui::MainWindow window;
  window.show();
  return QApplication::exec();
}
