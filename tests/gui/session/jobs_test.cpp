#include "gui/session/jobs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QSemaphore>
#include <QSignalSpy>
#include <QTest>

namespace meshwright::gui {
namespace {

constexpr int kPatienceMs = 10'000;

bool settles(Jobs& jobs) {
  return QTest::qWaitFor([&] { return jobs.is_idle(); }, kPatienceMs);
}

TEST(Jobs, DeliverResultsOnTheRequestingThread) {
  Jobs jobs;
  int result = 0;
  QThread* worked_on = nullptr;
  QThread* delivered_on = nullptr;
  jobs.start<int>(
      {"answer", "", true}, &jobs,
      [&](const JobContext&) {
        worked_on = QThread::currentThread();
        return 42;
      },
      [&](int value) {
        delivered_on = QThread::currentThread();
        result = value;
      });
  ASSERT_TRUE(settles(jobs));
  EXPECT_EQ(result, 42);
  EXPECT_NE(worked_on, QThread::currentThread());
  EXPECT_EQ(delivered_on, QThread::currentThread());
}

// Five requests in one lane while the first one is blocked: the first runs, the last waits, and the
// three in between never run. The first is superseded, so only the last result is delivered.
TEST(Jobs, RunOnlyTheLatestWaitingRequestOfALane) {
  Jobs jobs;
  QSemaphore gate;
  std::atomic<int> ran = 0;
  std::vector<int> delivered;
  for (int i = 0; i < 5; ++i)
    jobs.start<int>(
        {"slide", "live", true}, &jobs,
        [&, i](const JobContext&) {
          gate.acquire();
          ++ran;
          return i;
        },
        [&](int value) { delivered.push_back(value); });
  gate.release(5);
  ASSERT_TRUE(settles(jobs));
  EXPECT_EQ(ran, 2);
  EXPECT_THAT(delivered, testing::ElementsAre(4));
}

// Jobs that follow a slider deliver superseded results too: both arrive, in order.
TEST(Jobs, ThatAreNotListedShowResultsOnTheWay) {
  Jobs jobs;
  QSemaphore gate;
  std::vector<int> delivered;
  for (int i = 0; i < 3; ++i)
    jobs.start<int>(
        {"slide", "live", false}, &jobs,
        [&, i](const JobContext&) {
          gate.acquire();
          return i;
        },
        [&](int value) { delivered.push_back(value); });
  gate.release(3);
  ASSERT_TRUE(settles(jobs));
  EXPECT_THAT(delivered, testing::ElementsAre(0, 2));
}

TEST(Jobs, ReportInputErrors) {
  Jobs jobs;
  JobFailure failure;
  jobs.start<int>(
      {"open", "", true}, &jobs,
      [](const JobContext&) -> int {
        throw InputError(Diagnostic{"a.json", "is bad", "mend it"});
      },
      [](int) { FAIL(); }, [&](const JobFailure& f) { failure = f; });
  ASSERT_TRUE(settles(jobs));
  ASSERT_EQ(failure.diagnostics.size(), 1u);
  EXPECT_EQ(failure.kind, JobFailure::Kind::kInput);
  EXPECT_EQ(failure.diagnostics[0].where, "a.json");
}

TEST(Jobs, DeliverNothingAfterCancellation) {
  Jobs jobs;
  QSemaphore started;
  const JobId job = jobs.start<int>(
      {"search", "plans", true}, &jobs,
      [&](const JobContext& context) {
        started.release();
        while (!context.is_canceled()) QThread::usleep(100);
        return 1;
      },
      [](int) { FAIL(); });
  started.acquire();
  QSignalSpy finished(&jobs, &Jobs::finished);
  jobs.cancel(job);
  ASSERT_TRUE(settles(jobs));
  ASSERT_EQ(finished.count(), 1);
  EXPECT_EQ(finished[0][2].value<JobState>(), JobState::kCanceled);
}

TEST(Jobs, EndWithTheirOwner) {
  std::atomic<bool> ended = false;
  QSemaphore started;
  {
    Jobs jobs;
    jobs.start<int>(
        {"search", "", true}, &jobs,
        [&](const JobContext& context) {
          started.release();
          while (!context.is_canceled()) QThread::usleep(100);
          ended = true;
          return 1;
        },
        [](int) { FAIL(); });
    started.acquire();
  }
  EXPECT_TRUE(ended);
}

TEST(Jobs, NeverCallDestroyedOwners) {
  Jobs jobs;
  auto receiver = std::make_unique<QObject>();
  QSemaphore gate;
  jobs.start<int>(
      {"late", "", true}, receiver.get(),
      [&](const JobContext&) {
        gate.acquire();
        return 1;
      },
      [](int) { FAIL(); });
  receiver.reset();
  gate.release();
  EXPECT_TRUE(settles(jobs));
}

TEST(Jobs, ReportProgress) {
  Jobs jobs;
  QSemaphore reported, gate;
  jobs.start<int>(
      {"count", "", true}, &jobs,
      [&](const JobContext& context) {
        context.report(3, 7);
        reported.release();
        gate.acquire();
        return 1;
      },
      [](int) {});
  reported.acquire();
  EXPECT_TRUE(QTest::qWaitFor([&] { return jobs.listed()[0].done == 3; }, kPatienceMs));
  EXPECT_EQ(jobs.listed()[0].of, 7);
  gate.release();
  ASSERT_TRUE(settles(jobs));
  EXPECT_TRUE(jobs.listed().empty());
}

}  // namespace
}  // namespace meshwright::gui
