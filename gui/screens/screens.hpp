/// Creates all screens in tab order.
#pragma once

#include <vector>

#include "gui/screens/screen.hpp"

namespace meshwright::gui {

/// The screens are children of `parent`.
std::vector<Screen*> make_screens(Workbench& workbench, QWidget* parent);

}  // namespace meshwright::gui
