/// Closes the window in the middle of each kind of work and destroys everything. Nothing may hang,
/// crash or leak a thread or child process.
#include <fmt/format.h>
#include <unistd.h>

#include <QComboBox>
#include <QDir>
#include <QElapsedTimer>
#include <QSpinBox>
#include <QTemporaryDir>
#include <charconv>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <set>

#include "core/formats/file.hpp"
#include "gui/screens/calibration_screen.hpp"
#include "gui/screens/run_screen.hpp"
#include "gui/session/scenario.hpp"
#include "gui/widgets/actions.hpp"
#include "tests/gui/window/window_fixture.hpp"

namespace meshwright::gui {
namespace {

/// CPU time limit of all threads for closing, and the wall-clock limit under a sanitizer on a
/// machine with ten times as many runnable threads as cores.
constexpr double kMostSecondsOfWork = 5;
constexpr int kMostMsToClose = 30'000;

int thread_count() {
  int count = 0;
  for ([[maybe_unused]] const auto& task : std::filesystem::directory_iterator("/proc/self/task"))
    ++count;
  return count;
}

/// State and parent of a process, proc(5); the process name in between may contain any character.
std::pair<char, pid_t> state_and_parent(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  std::string line;
  std::getline(file, line);
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos || name_end + 4 > line.size()) return {'X', 0};
  pid_t parent = 0;
  const std::string_view rest = std::string_view(line).substr(name_end + 4);
  std::from_chars(rest.data(), rest.data() + rest.size(), parent);
  return {line[name_end + 2], parent};
}

std::multimap<pid_t, pid_t> processes_by_parent() {
  std::multimap<pid_t, pid_t> processes;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    pid_t process = 0;
    const auto parsed = std::from_chars(name.data(), name.data() + name.size(), process);
    if (parsed.ec != std::errc() || process == 0) continue;
    processes.emplace(state_and_parent(process).second, process);
  }
  return processes;
}

/// Children of this process, recursively.
std::set<pid_t> descendants() {
  const auto by_parent = processes_by_parent();
  std::set<pid_t> found;
  std::vector<pid_t> open{::getpid()};
  while (!open.empty()) {
    const auto [begin, end] = by_parent.equal_range(open.back());
    open.pop_back();
    for (auto child = begin; child != end; ++child)
      if (found.insert(child->second).second) open.push_back(child->second);
  }
  return found;
}

/// A zombie does not count as alive.
bool is_alive(pid_t process) {
  const char state = state_and_parent(process).first;
  return state != 'X' && state != 'Z';
}

class ClosingTest : public WindowTest {
 protected:
  /// The default scenario with enough micro-batches for seconds of work.
  void set_large_scenario(int micro_batches) {
    Scenario large = default_scenario();
    set_pipeline_degree(large, 16);
    set_microbatches(large, micro_batches);
    workbench->scenario().replace("large", large);
  }
  bool becomes_busy(const QString& lane) {
    return QTest::qWaitFor([&] { return workbench->jobs().is_busy(lane); }, kPatienceMs);
  }
  bool starts_children(std::size_t count) {
    return QTest::qWaitFor([&] { return descendants().size() >= count; }, kPatienceMs);
  }

  /// Ends like main(): closes the window, then destroys everything.
  void close_and_check() {
    ASSERT_FALSE(workbench->jobs().is_idle() && descendants().empty()) << "no work in progress";
    const std::set<pid_t> children = descendants();
    QElapsedTimer timer;
    timer.start();
    const std::clock_t worked_before = std::clock();
    window->actions().find("file.quit")->trigger();
    EXPECT_FALSE(window->isVisible());
    window.reset();
    workbench.reset();
    const qint64 took = timer.elapsed();
    RecordProperty("closed_within_ms", static_cast<int>(took));
    EXPECT_LT(took, kMostMsToClose);
    EXPECT_LT(static_cast<double>(std::clock() - worked_before) / CLOCKS_PER_SEC,
              kMostSecondsOfWork);
    for (const pid_t child : children)
      EXPECT_TRUE(QTest::qWaitFor([&] { return !is_alive(child); }, kMostMsToClose))
          << "process " << child << " is still running";
    QThreadPool::globalInstance()->waitForDone();
    EXPECT_TRUE(QTest::qWaitFor([&] { return thread_count() <= most_threads_; }, kMostMsToClose))
        << thread_count() << " threads, " << most_threads_ << " are Qt's own";
  }

 private:
  /// Threads that stay between windows: this one, Qt's idle pool threads, and the one Qt watches
  /// child processes with.
  const int most_threads_ = 3 + QThreadPool::globalInstance()->maxThreadCount();
};

TEST_F(ClosingTest, InTheMiddleOfASearchOfPlans) {
  ASSERT_TRUE(settles());
  window->actions().find("plans.search")->trigger();
  ASSERT_TRUE(becomes_busy("plan"));
  QTest::qWait(200);  // the search has its own threads by then
  close_and_check();
}

TEST_F(ClosingTest, InTheMiddleOfASearchForOrders) {
  constexpr int kSearchedForSeconds = 512;  // micro-batches
  set_large_scenario(kSearchedForSeconds);
  ASSERT_TRUE(settles());
  window->actions().find("explore.made-to-measure")->trigger();
  ASSERT_TRUE(becomes_busy("made-to-measure"));
  close_and_check();
}

TEST_F(ClosingTest, InTheMiddleOfASweep) {
  ASSERT_TRUE(settles());
  window->show_screen("sweep");
  ASSERT_TRUE(becomes_busy("sweep"));
  close_and_check();
}

TEST_F(ClosingTest, InTheMiddleOfASimulationOfALargeScenario) {
  ASSERT_TRUE(settles());
  window->show_screen("explore");
  set_large_scenario(10'000);  // 920,000 tasks
  ASSERT_TRUE(becomes_busy("simulate"));
  QTest::qWait(20);
  close_and_check();
}

TEST_F(ClosingTest, InTheMiddleOfTheSearchForCausesOfALargeScenario) {
  ASSERT_TRUE(settles());
  set_large_scenario(4'000);
  ASSERT_TRUE(becomes_busy("causes"));
  close_and_check();
}

TEST_F(ClosingTest, InTheMiddleOfOpeningAFile) {
  ASSERT_TRUE(settles());
  const QTemporaryDir folder;
  std::string trace = R"({"traceEvents": [)";
  for (int i = 0; i < 400'000; ++i)
    trace += fmt::format(R"({}{{"ph":"X","name":"k{}","cat":"kernel","pid":0,"tid":7,"ts":{},)"
                         R"("dur":2}})",
                         i == 0 ? "" : ",\n", i % 97, 3 * i);
  const QString path = folder.filePath("rank0.json");
  write_file(path.toStdString(), trace + "]}");
  workbench->open({path});
  ASSERT_TRUE(becomes_busy("open"));
  QTest::qWait(20);
  close_and_check();
}

class ClosingTestOfRuns : public ClosingTest, public testing::WithParamInterface<const char*> {};

// A rank is a thread of the child process, or a process of its own that must not be left over
// either.
TEST_P(ClosingTestOfRuns, InTheMiddleOfARun) {
  if (ChildProgram::find().isEmpty()) GTEST_SKIP() << "the program meshwright is not built";
  set_small_scenario();
  auto& run = screen<RunScreen>("run");
  for (QComboBox* box : run.findChildren<QComboBox*>()) {
    if (box->findText(GetParam()) >= 0) box->setCurrentText(GetParam());
    if (box->findText("wall") >= 0) box->setCurrentText("wall");
  }
  run.findChild<QSpinBox*>()->setValue(1000);
  // Temporary directories are named after the program; count only those of this test.
  const QString name = QCoreApplication::applicationName();
  QCoreApplication::setApplicationName(QString("%1-%2").arg(name).arg(::getpid()));
  const auto folders = [pattern = QCoreApplication::applicationName() + "-*"] {
    return QDir::temp().entryList({pattern}).size();
  };
  window->actions().find("run.start")->trigger();
  QCoreApplication::setApplicationName(name);
  EXPECT_EQ(folders(), 1);
  ASSERT_TRUE(starts_children(std::string_view(GetParam()) == "processes" ? 3 : 1));
  EXPECT_TRUE(run.is_running());
  close_and_check();
  EXPECT_EQ(folders(), 0) << "plan and trace were not deleted";
}
INSTANTIATE_TEST_SUITE_P(Ranks, ClosingTestOfRuns, testing::Values("threads", "processes"),
                         [](const auto& ranks) { return std::string(ranks.param); });

TEST_F(ClosingTest, InTheMiddleOfACalibration) {
  if (ChildProgram::find().isEmpty()) GTEST_SKIP() << "the program meshwright is not built";
  ASSERT_TRUE(settles());
  window->actions().find("calibration.measure")->trigger();
  ASSERT_TRUE(starts_children(1));
  QTest::qWait(100);
  EXPECT_TRUE(screen<CalibrationScreen>("calibration").is_measuring());
  close_and_check();
}

}  // namespace
}  // namespace meshwright::gui
