#include "gui/screens.hpp"

#include "gui/calibration_screen.hpp"
#include "gui/compare_screen.hpp"
#include "gui/explore_screen.hpp"
#include "gui/memory_screen.hpp"
#include "gui/plans_screen.hpp"
#include "gui/run_screen.hpp"
#include "gui/sweep_screen.hpp"
#include "gui/topology_screen.hpp"
#include "gui/welcome_screen.hpp"

namespace meshwright::gui {

std::vector<Screen*> make_screens(Workbench& workbench, QWidget* parent) {
  return {
      new WelcomeScreen(workbench, parent),     new ExploreScreen(workbench, parent),
      new PlansScreen(workbench, parent),       new CompareScreen(workbench, parent),
      new RunScreen(workbench, parent),         new TopologyScreen(workbench, parent),
      new MemoryScreen(workbench, parent),      new SweepScreen(workbench, parent),
      new CalibrationScreen(workbench, parent),
  };
}

}  // namespace meshwright::gui
