#include "executor/tasks/replay_actions.hpp"

#include "executor/transport/collectives.hpp"

namespace meshwright {
ReplayActions::ReplayActions(const Strategy& strategy, Communicator& communicator)
    : communicator_(communicator), groups_(axis_groups_of(strategy, communicator.rank())) {}

void ReplayActions::begin_step(int) { next_tag_ = {}; }

Ticks ReplayActions::communicate(const RunTask&, const LayerStep&, const Collective& collective,
                                 Ticks ready) {
  const Channel channel = channel_of(collective.axis);
  const MessageTag tag{channel, next_tag_[static_cast<std::size_t>(channel)]++};
  return RankGroup(communicator_, members_of(groups_, collective), tag).synchronize(ready);
}

Ticks ReplayActions::communicate(const RunTask& task, const Collective&,
                                 std::span<const RankId> members, Ticks ready) {
  const MessageTag tag{Channel::kData, task.partner};
  return RankGroup(communicator_, {members.begin(), members.end()}, tag).synchronize(ready);
}

}  // namespace meshwright
