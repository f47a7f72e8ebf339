/// The list of screens, in the order of their tabs.
#pragma once

#include <vector>

#include "gui/screen.hpp"

namespace meshwright::gui {

/// Children of `parent`.
std::vector<Screen*> make_screens(Workbench& workbench, QWidget* parent);

}  // namespace meshwright::gui
