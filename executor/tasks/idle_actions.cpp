#include "executor/tasks/idle_actions.hpp"

#include "executor/transport/collectives.hpp"

namespace meshwright {
IdleActions::IdleActions(const Strategy& strategy, Communicator& communicator)
    : communicator_(communicator), groups_(axis_groups_of(strategy, communicator.rank())) {}

void IdleActions::begin_step(int) { next_tag_ = {}; }

Ticks IdleActions::communicate(const Task&, const LayerStep&, const Collective& collective,
                               Ticks ready) {
  const Channel channel = channel_of(collective.axis);
  const MessageTag tag{channel, next_tag_[static_cast<std::size_t>(channel)]++};
  return RankGroup(communicator_, members_of(groups_, collective), tag).meet(ready);
}

Ticks IdleActions::communicate(const Task& task, const Collective&, std::span<const RankId> members,
                               Ticks ready) {
  const MessageTag tag{Channel::kData, task.partner};
  return RankGroup(communicator_, {members.begin(), members.end()}, tag).meet(ready);
}

}  // namespace meshwright
