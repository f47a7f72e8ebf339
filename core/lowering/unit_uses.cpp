#include "core/lowering/unit_uses.hpp"

#include <algorithm>

#include "core/lowering/data_groups.hpp"
#include "core/lowering/lowering_context.hpp"
#include "core/plan/placement.hpp"

namespace meshwright {
namespace {

bool makes_gradients(Pass pass) { return pass == Pass::kBackward || pass == Pass::kBackwardWeight; }
bool needs_parameters(Pass pass) { return pass != Pass::kBackwardWeight; }
bool goes_back(Pass pass) { return pass == Pass::kBackward || pass == Pass::kBackwardInput; }

bool same_unit(const UnitUse& a, const UnitUse& b) {
  return a.action.stage == b.action.stage && a.unit == b.unit;
}

/// Lists the uses of every device and accounts for their buffers.
class UnitUses {
 public:
  explicit UnitUses(const LoweringContext& context)
      : context_(context), strategy_(context.strategy), schedule_(context.schedule) {
    const std::size_t stages = schedule_.placement.device_of_stage.size();
    seen_forward_.assign(stages, false);
    last_backward_.assign(stages, nullptr);
    const auto is_sharded = [&](bool expert) {
      return data_groups_of(strategy_, context_.groups, expert).shard.shape.ranks > 1;
    };
    shards_dense_ = is_sharded(false);
    shards_experts_ = is_sharded(true);
    for (const auto& order : schedule_.orders)
      for (const Action& action : order)
        if (makes_gradients(action.pass)) last_backward_[action.stage.index()] = &action;
  }

  std::vector<UnitUse> of_device(std::size_t device) {
    std::vector<UnitUse> uses;
    std::size_t most = 0;
    for (const Action& action : schedule_.orders[device])
      most += units_of(action.stage).units.size();
    uses.reserve(strategy_.zero >= 2 ? most : 0);
    for (const Action& action : schedule_.orders[device]) append(action, uses);
    if (strategy_.zero >= 3) count_parameters_held(uses);
    if (strategy_.zero >= 2) count_gradients_held(uses);
    return uses;
  }

 private:
  const PartUnits& units_of(StageId stage) const {
    const int part = context_.placement.part_of_stage[stage.index()];
    return context_.units[static_cast<std::size_t>(part)];
  }

  /// Empty if the action is a single task.
  void append(const Action& action, std::vector<UnitUse>& uses) {
    const std::size_t stage = action.stage.index();
    const bool first = action.pass == Pass::kForward && !seen_forward_[stage];
    if (first) seen_forward_[stage] = true;
    const bool last = last_backward_[stage] == &action;
    if (!is_split(action.pass, first, last)) return;
    const int count = static_cast<int>(units_of(action.stage).units.size());
    for (int i = 0; i < count; ++i) {
      UnitUse use;
      use.action = action;
      use.unit = action.pass == Pass::kForward ? i : count - 1 - i;
      use.gathers = first && strategy_.data_parallelism.overlap_gather;
      use.completes_gradients = last;
      uses.push_back(use);
    }
  }

  bool is_split(Pass pass, bool first, bool last) const {
    if (strategy_.zero >= 3) return true;
    const DataParallelism& data = strategy_.data_parallelism;
    if (pass == Pass::kForward) return first && data.overlap_gather;
    if (pass == Pass::kBackwardInput) return false;
    return strategy_.zero == 2 || (last && data.buckets.rule != BucketRule::kNone);
  }

  template <class Predicate>
  static std::vector<int> places_of(const std::vector<UnitUse>& uses, Predicate holds) {
    std::vector<int> places;
    for (std::size_t i = 0; i < uses.size(); ++i)
      if (holds(uses[i].action.pass)) places.push_back(static_cast<int>(i));
    return places;
  }

  void count_parameters_held(std::vector<UnitUse>& uses) {
    const std::vector<int> places = places_of(uses, needs_parameters);
    const auto use_at = [&](std::size_t i) -> UnitUse& {
      return uses[static_cast<std::size_t>(places[i])];
    };
    const auto ahead = static_cast<std::size_t>(strategy_.data_parallelism.prefetch);
    const std::int64_t most = context_.options.memory.most_gathered_parameters;
    std::vector<std::size_t> held;  // one use per gathered unit
    std::size_t first = 0;          // use; those from it to the current one may be gathered at once
    std::int64_t gathered = 0;      // their elements
    for (std::size_t i = 0; i < places.size(); ++i) {
      UnitUse& use = use_at(i);
      gathered += unit_elements(use);
      for (; first < i && (first + ahead < i || (most > 0 && gathered > most)); ++first)
        gathered -= unit_elements(use_at(first));
      const auto is_it = [&](std::size_t other) { return same_unit(use_at(other), use); };
      const Bytes bytes = unit_bytes(use, stored_element(strategy_.dtype).value);
      if (std::none_of(held.begin(), held.end(), is_it)) {
        use.gathers = true;
        use.gather_after = first > 0 ? places[first - 1] : -1;
        // Weight-gradient passes in between need no parameters, but parameters stay gathered.
        const auto beside = static_cast<std::size_t>(std::int64_t{use.gather_after} + 1);
        uses[beside].acquired[MemoryClass::kCommunication] += bytes;
        held.push_back(i);
      }
      bool is_used_soon = false;
      const std::size_t soon = std::min(places.size(), i + 1 + std::max<std::size_t>(1, ahead));
      for (std::size_t next = i + 1; next < soon; ++next)
        is_used_soon = is_used_soon || same_unit(use_at(next), use);
      const bool is_awaited = waits_for_backward(use);
      if (is_used_soon || is_awaited) continue;
      use.released[MemoryClass::kCommunication] += bytes;
      std::erase_if(held, is_it);
    }
  }

  /// The embedding and the head, if the trainer keeps them gathered.
  bool stays_gathered(const UnitUse& use) const {
    if (!context_.options.memory.keeps_ends_gathered) return false;
    const int part = context_.placement.part_of_stage[use.action.stage.index()];
    const auto last_unit = static_cast<int>(units_of(use.action.stage).units.size()) - 1;
    return (part == 0 && use.unit == 0) ||
           (part + 1 == part_count(context_.placement) && use.unit == last_unit);
  }

  /// Whether the first layer of the unit does; under ZeRO 3 every layer is a unit.
  bool reshards(const UnitUse& use) const {
    const auto part =
        static_cast<std::size_t>(context_.placement.part_of_stage[use.action.stage.index()]);
    const ParameterUnit& unit = context_.units[part].units[static_cast<std::size_t>(use.unit)];
    return context_.layers[part][static_cast<std::size_t>(unit.first_layer)].reshards_after_forward;
  }

  /// With reshard_after_forward off: a micro-batch is between forward and backward of the unit.
  bool waits_for_backward(const UnitUse& use) {
    if (reshards(use) && !stays_gathered(use)) return false;
    const std::size_t stage = use.action.stage.index();
    if (outstanding_.size() <= stage) outstanding_.resize(stage + 1);
    std::vector<int>& counts = outstanding_[stage];
    counts.resize(units_of(use.action.stage).units.size(), 0);
    int& count = counts[static_cast<std::size_t>(use.unit)];
    count += goes_back(use.action.pass) ? -1 : 1;
    return count > 0;
  }

  void count_gradients_held(std::vector<UnitUse>& uses) {
    const std::vector<int> places = places_of(uses, makes_gradients);
    const auto use_at = [&](std::size_t i) -> UnitUse& {
      return uses[static_cast<std::size_t>(places[i])];
    };
    const ModelStateBytes state = model_state_bytes(strategy_, context_.options.memory);
    for (std::size_t i = 0; i < places.size(); ++i) {
      use_at(i).reduces = true;
      if (i >= 2) use_at(i).after_reduction_of = places[i - 2];
      const Bytes bytes = unit_bytes(use_at(i), state.unreduced);
      use_at(i).acquired[MemoryClass::kGradients] += bytes;
      use_at(std::min(i + 1, places.size() - 1)).released[MemoryClass::kGradients] += bytes;
    }
    for (std::size_t i = places.size(); i-- > 0;) {
      if (!adds_to_table(use_at(i))) continue;
      use_at(i).completes_table = true;
      break;
    }
  }

  bool adds_to_table(const UnitUse& use) const {
    const PartUnits& part = units_of(use.action.stage);
    return part.units[static_cast<std::size_t>(use.unit)].reads_table > 0 ||
           std::any_of(part.buckets.begin(), part.buckets.end(),
                       [&](const GradientBucket& b) { return b.is_table && b.unit == use.unit; });
  }

  /// Number of parameters to gather.
  std::int64_t unit_elements(const UnitUse& use) const {
    const ParameterUnit& unit =
        units_of(use.action.stage).units[static_cast<std::size_t>(use.unit)];
    std::int64_t elements = 0;
    if (shards_dense_) elements += unit.parameters.dense + unit.reads_table;
    if (shards_experts_) elements += unit.parameters.expert;
    return elements;
  }
  Bytes unit_bytes(const UnitUse& use, std::int64_t element) const {
    const std::int64_t elements = unit_elements(use);
    const std::int64_t most = context_.options.memory.most_gathered_parameters;
    return Bytes(element * (most > 0 ? std::min(elements, most) : elements));
  }

  const LoweringContext& context_;
  const Strategy& strategy_;
  const Schedule& schedule_;
  bool shards_dense_ = false, shards_experts_ = false;
  std::vector<bool> seen_forward_;             ///< by stage
  std::vector<const Action*> last_backward_;   ///< by stage: the one that completes its gradients
  std::vector<std::vector<int>> outstanding_;  ///< by stage, then unit
};

}  // namespace

std::vector<std::vector<UnitUse>> list_unit_uses(const LoweringContext& context) {
  std::vector<std::vector<UnitUse>> uses;
  UnitUses lister(context);
  for (std::size_t d = 0; d < context.schedule.orders.size(); ++d)
    uses.push_back(lister.of_device(d));
  return uses;
}

}  // namespace meshwright
