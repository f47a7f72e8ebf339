// Two timelines as files, beside each other.
#include "gui/screens/opened_comparison.hpp"

#include <gtest/gtest.h>

#include <QTemporaryDir>

#include "core/formats/file.hpp"
#include "core/formats/pftrace.hpp"

namespace meshwright::gui {
namespace {

Timeline one_task(TimelineOrigin origin, Ticks duration) {
  Timeline t;
  t.origin = origin;
  t.clock = origin == TimelineOrigin::kPredicted ? TimelineClock::kSimulated : TimelineClock::kWall;
  t.tracks = {{RankId(0), Stream::kCompute}};
  t.names = {"r0.compute.s0.F0"};
  t.spans = {{Ticks(0), duration, 0, 0, 0, 0, TaskKind::kForward}};
  return t;
}

class TwoTimelines : public testing::Test {
 protected:
  std::string path(const char* name) const { return folder_.filePath(name).toStdString(); }
  QTemporaryDir folder_;
};

TEST_F(TwoTimelines, FilesMayBeLargerThanTexts) {
  Timeline predicted = one_task(TimelineOrigin::kPredicted, Ticks(100));
  predicted.provenance["note"] = std::string(kLargestTextFile + 1, 'x');
  write_file(path("p.pftrace"), to_pftrace(predicted));
  write_file(path("m.pftrace"), to_pftrace(one_task(TimelineOrigin::kMeasured, Ticks(125))));
  // In either order: the measured one is known by its origin.
  for (const bool in_order : {true, false}) {
    const OpenedComparison opened = in_order ? compare_files(path("p.pftrace"), path("m.pftrace"))
                                             : compare_files(path("m.pftrace"), path("p.pftrace"));
    EXPECT_EQ(opened.problem, "");
    EXPECT_EQ(opened.predicted->origin, TimelineOrigin::kPredicted);
    EXPECT_EQ(opened.measured->origin, TimelineOrigin::kMeasured);
    EXPECT_EQ(opened.measured_path, path("m.pftrace"));
  }
}

}  // namespace
}  // namespace meshwright::gui
