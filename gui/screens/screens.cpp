#include "gui/screens/screens.hpp"

#include "gui/screens/calibration_screen.hpp"
#include "gui/screens/compare_screen.hpp"
#include "gui/screens/explore_screen.hpp"
#include "gui/screens/graph_screen.hpp"
#include "gui/screens/lecture_screen.hpp"
#include "gui/screens/memory_screen.hpp"
#include "gui/screens/plans_screen.hpp"
#include "gui/screens/run_screen.hpp"
#include "gui/screens/sweep_screen.hpp"
#include "gui/screens/topology_screen.hpp"
#include "gui/screens/welcome_screen.hpp"

namespace meshwright::gui {

std::vector<Screen*> make_screens(Workbench& workbench, QWidget* parent) {
  return {
      new WelcomeScreen(workbench, parent),     new ExploreScreen(workbench, parent),
      new PlansScreen(workbench, parent),       new CompareScreen(workbench, parent),
      new RunScreen(workbench, parent),         new TopologyScreen(workbench, parent),
      new MemoryScreen(workbench, parent),      new SweepScreen(workbench, parent),
      new CalibrationScreen(workbench, parent), new LectureScreen(workbench, parent),
      new GraphScreen(workbench, parent),
  };
}

}  // namespace meshwright::gui
