#include "gui/screens.hpp"

#include "gui/explore_screen.hpp"
#include "gui/welcome_screen.hpp"

namespace meshwright::gui {

std::vector<Screen*> make_screens(Workbench& workbench, QWidget* parent) {
  return {
      new WelcomeScreen(workbench, parent),
      new ExploreScreen(workbench, parent),
  };
}

}  // namespace meshwright::gui
