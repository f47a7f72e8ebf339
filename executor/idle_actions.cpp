#include "executor/idle_actions.hpp"

#include "executor/collectives.hpp"

namespace meshwright {
namespace {

/// One byte from everybody: all are there.
Ticks meet(Communicator& communicator, std::vector<RankId> members, MessageTag tag, Ticks ready) {
  std::vector<std::byte> bytes(members.size());
  return RankGroup(communicator, std::move(members), tag).all_gather(bytes, 1, ready);
}

}  // namespace

IdleActions::IdleActions(const Strategy& strategy, Communicator& communicator)
    : communicator_(communicator), groups_(axis_groups_of(strategy, communicator.rank())) {}

void IdleActions::begin_step(int) { next_tag_ = {}; }

Ticks IdleActions::communicate(const Task&, const LayerStep&, const Collective& collective,
                               Ticks ready) {
  const Channel channel = channel_of(collective.axis);
  const MessageTag tag{channel, next_tag_[static_cast<std::size_t>(channel)]++};
  return meet(communicator_, members_of(groups_, collective), tag, ready);
}

Ticks IdleActions::communicate(const Task& task, const Collective&, std::span<const RankId> members,
                               Ticks ready) {
  return meet(communicator_, {members.begin(), members.end()}, {Channel::kData, task.partner},
              ready);
}

}  // namespace meshwright
