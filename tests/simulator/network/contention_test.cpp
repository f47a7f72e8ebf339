#include "simulator/network/contention.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace meshwright {
namespace {

/// A message of as many bytes as its occupancy has ticks.
struct Sent {
  Ticks start;
  std::vector<LinkId> route;
  Ticks occupancy;
};

constexpr BytesPerSecond kFullSpeed(1e12);  // one byte per tick

/// Starts the messages at their times and runs them to their ends.
std::vector<Ticks> ends_of(const std::vector<double>& capacities, const std::vector<Sent>& sent) {
  std::vector<BytesPerSecond> links;
  for (const double capacity : capacities) links.push_back(kFullSpeed * capacity);
  FlowsOnLinks flows(links);
  std::vector<Ticks> ends(sent.size(), Ticks::max());
  std::map<std::size_t, std::size_t> slots;  // of the messages in flight
  std::size_t arrived = 0;
  for (Ticks now; arrived < sent.size();) {
    for (std::size_t i = 0; i < sent.size(); ++i) {
      if (sent[i].start == now)
        slots[i] = flows.start({.task = TaskId(i),
                                .route = sent[i].route,
                                .limit = kFullSpeed,
                                .occupancy = sent[i].occupancy},
                               now);
      if (slots.count(i) == 1 && ends[i] == now) {
        flows.finish(slots[i]);
        slots.erase(i);
        ++arrived;
      }
    }
    for (const FlowEnd& end : flows.rebalance(now)) ends[end.task.index()] = end.end;
    Ticks next = Ticks::max();
    for (std::size_t i = 0; i < sent.size(); ++i) {
      if (sent[i].start > now) next = std::min(next, sent[i].start);
      if (slots.count(i) == 1) next = std::min(next, ends[i]);
    }
    now = next;
  }
  return ends;
}

const LinkId kA{0}, kB{1};

TEST(FlowsOnLinks, LeaveAMessageAloneThatMeetsNone) {
  EXPECT_EQ(ends_of({1, 1}, {{Ticks(3), {kA}, Ticks(101)}, {Ticks(5), {kB}, Ticks(7)}}),
            (std::vector<Ticks>{Ticks(104), Ticks(12)}));
}

// Two messages of 100 at once on one link: each at half speed, both end at 200.
TEST(FlowsOnLinks, HalveALinkBetweenTwoMessages) {
  EXPECT_EQ(ends_of({1}, {{Ticks(0), {kA}, Ticks(100)}, {Ticks(0), {kA}, Ticks(100)}}),
            (std::vector<Ticks>{Ticks(200), Ticks(200)}));
}

// The second joins at 40: the first has 60 left, which take until 40 + 120 = 160. By then the
// second has done 60 of its 100; alone, it ends at 200.
TEST(FlowsOnLinks, ShareFromTheMomentASecondMessageJoins) {
  EXPECT_EQ(ends_of({1}, {{Ticks(0), {kA}, Ticks(100)}, {Ticks(40), {kA}, Ticks(100)}}),
            (std::vector<Ticks>{Ticks(160), Ticks(200)}));
}

// Three at a third each: all end at 30, though a third is no binary fraction.
TEST(FlowsOnLinks, EndOnTheTickThatThirdsAddUpTo) {
  EXPECT_EQ(ends_of({1}, {{Ticks(0), {kA}, Ticks(10)},
                          {Ticks(0), {kA}, Ticks(10)},
                          {Ticks(0), {kA}, Ticks(10)}}),
            (std::vector<Ticks>{Ticks(30), Ticks(30), Ticks(30)}));
}

// Links of 1.0 and 0.5. Message 0 (60) over both, 1 (90) over the first, 2 (30) over the second.
// The second link gives 1/4 each, the first leaves 3/4 to message 1.
//   message 1: 90 / (3/4) = 120;  message 2: 30 / (1/4) = 120
// At 120 message 0 has 60 - 30 = 30 left and the second link's 1/2 to itself: 120 + 60 = 180.
TEST(FlowsOnLinks, FollowTheTightestLinkAndSpeedUpWhenItIsFree) {
  EXPECT_EQ(ends_of({1, 0.5}, {{Ticks(0), {kA, kB}, Ticks(60)},
                               {Ticks(0), {kA}, Ticks(90)},
                               {Ticks(0), {kB}, Ticks(30)}}),
            (std::vector<Ticks>{Ticks(180), Ticks(120), Ticks(120)}));
}

// A link of twice the speed carries two messages at full speed each.
TEST(FlowsOnLinks, ShareNothingWhereTheLinkHasRoomForBoth) {
  EXPECT_EQ(ends_of({2}, {{Ticks(0), {kA}, Ticks(97)}, {Ticks(11), {kA}, Ticks(97)}}),
            (std::vector<Ticks>{Ticks(97), Ticks(108)}));
}

// 5 s on a link that lacks one part in 10^13, which is within the precision of rates: the message
// runs at full speed, and ends not even a Tick earlier than alone.
TEST(FlowsOnLinks, TakeNoLessThanAloneOnALinkThatIsJustTooSlow) {
  const Ticks alone(5'000'000'000'000);
  EXPECT_EQ(ends_of({1 - 1e-13}, {{Ticks(0), {kA}, alone}}), std::vector<Ticks>{alone});
}

// A message that ends when another one starts does not share the link with it.
TEST(FlowsOnLinks, DoNotLetAnEndMeetAStart) {
  EXPECT_EQ(ends_of({1}, {{Ticks(0), {kA}, Ticks(50)}, {Ticks(50), {kA}, Ticks(50)}}),
            (std::vector<Ticks>{Ticks(50), Ticks(100)}));
}

}  // namespace
}  // namespace meshwright
