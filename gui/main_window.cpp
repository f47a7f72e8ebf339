#include "gui/main_window.hpp"

namespace meshwright::gui {

MainWindow::MainWindow() { setWindowTitle("Meshwright"); }

}  // namespace meshwright::gui
