/// Pipeline schedules: the order of work of every device. Plain data and pure generators.
///
/// A *device* here is one pipeline rank, 0..p-1. A *stage* is one model chunk; a device holds one
/// or more. Devices execute their orders strictly in sequence: an action starts when its device is
/// free and its inputs have arrived.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/ids.hpp"
#include "core/base/units.hpp"
#include "core/schedule/stage_times.hpp"

namespace meshwright {

/// Letters as in PyTorch's schedule CSV; S and T, which it does not define, as in Yeung et al.,
/// arXiv:2411.05288.
enum class Pass : std::uint8_t {
  kForward,         ///< F
  kBackward,        ///< B: input and weight gradients
  kBackwardInput,   ///< I: input gradient only
  kBackwardWeight,  ///< W: weight gradient only, any time after its I
  kOutputScores,    ///< S: logits of this device's vocabulary shard of the output layer
  kOutputGradient,  ///< T: gradients of that shard, any time after S on all devices
};
char letter_of(Pass pass);

struct Action {
  StageId stage;
  Pass pass = Pass::kForward;
  MicrobatchId microbatch;
  /// Runs concurrently with the next action of this device; both start and end together. PyTorch's
  /// (0F4;7B0)OVERLAP_F_B. The pair waits for the inputs of both.
  bool overlaps_next = false;
  friend bool operator==(const Action&, const Action&) = default;
};

/// The device of each stage, and the routes of micro-batches through the stages.
struct Placement {
  int devices = 1;
  /// Device of each stage; its size is the number of stages.
  std::vector<PipelineRankId> device_of_stage;
  /// Model part of each stage. The identity except for bidirectional schedules, where two stages
  /// hold replicas of one part.
  std::vector<int> part_of_stage;
  /// Stages that a micro-batch visits, first to last. One route except for bidirectional schedules.
  std::vector<std::vector<StageId>> routes;
  friend bool operator==(const Placement&, const Placement&) = default;
};
/// Stage s on device s mod p: one chunk per device (v = 1), or Megatron-LM's interleaving.
Placement looped_placement(int devices, int chunks);
/// Waves: even chunks run down the devices, odd chunks back up, so that stages d and 2p - 1 - d
/// share device d. Two chunks form the V of ZB-V; Hanayo's W waves are 2 W chunks.
Placement wave_placement(int devices, int chunks);
/// Two replicas of a model of p parts: stages 0..p-1 down the devices, stages p..2p-1 back up.
/// Stage p + i holds part i and is on device p - 1 - i. Route 0 is down, route 1 is up.
Placement bidirectional_placement(int devices);

struct Schedule {
  std::string name;
  int microbatch_count = 0;
  Placement placement;
  std::vector<int> route_of_microbatch;     ///< in Placement::routes
  std::vector<std::vector<Action>> orders;  ///< by device
  /// k > 1: index u denotes sequence slice u mod k of micro-batch u / k. On every stage the
  /// forwards of the slices run first to last, the backwards last to first.
  int slices_per_microbatch = 1;
  /// Number of barriers across all devices between the last forward and the first backward of a
  /// micro-batch if the output layer is sharded over the devices (Vocabulary Parallelism,
  /// arXiv:2411.05288). 0: not sharded; the output layer belongs to the last stage, without S and
  /// T. 1: after S (Vocab-2, where S also computes the input gradient). 2: after S and after T
  /// (Vocab-1). If sharded, every device has one stage, and its S and T are tagged with that stage.
  int output_barriers = 0;
  /// If sharded: the passes of a device that follow a T wait for its barrier (Interlaced 1F1B), as
  /// its all-reduces are not overlapped.
  bool output_layer_blocks = false;
  friend bool operator==(const Schedule&, const Schedule&) = default;
};

/// "0F0 0F1 0B0": stage, letter, micro-batch; overlapped pairs as "(0F4;7B0)".
std::string to_text(std::span<const Action> order);
/// Inverse of to_text(). Throws InputError that names the invalid action.
std::vector<Action> order_from_text(std::string_view text);

/// Parameters of a schedule generator.
struct ScheduleRequest {
  int devices = 1;       ///< p
  int chunks = 1;        ///< v: stages per device
  int microbatches = 1;  ///< m
  /// Micro-batches that run through one chunk before the device switches to its next chunk
  /// (Megatron-LM's microbatch_group_size_per_vp_stage). Default: p.
  std::optional<int> microbatch_group;
  /// Number of equal sequence slices per micro-batch (Seq1F1B, TeraPipe). Default: 1.
  std::optional<int> slices;
  /// Times for cost-driven generators. Default: all passes take the same time.
  std::optional<StageTimes> times;
  /// Activation cap of cost-driven generators, in micro-batches of a whole device. Default: that of
  /// the schedule.
  std::optional<double> activation_cap;
  /// Fraction of an activation that the input gradient frees; only affects the cap.
  double freed_by_input_gradient = 0;
  friend bool operator==(const ScheduleRequest&, const ScheduleRequest&) = default;
};

/// When a stage updates its weights.
enum class UpdateTime : std::uint8_t {
  kAfterFlush,      ///< once per step, after the pipeline flush
  kEachMicrobatch,  ///< after every backward pass, without a flush
  kEachStep         ///< after a step's last backward pass, without a flush
};

/// The order of manually placed stages (Plan::device_of_stage), whose number is arbitrary.
enum class ManualOrder : std::uint8_t {
  kUnsupported,
  kMicrobatchByMicrobatch,
  kForwardsThenBackwards,
};

/// Where the forward pass of one micro-batch can run together with the backward pass of another, so
/// that expert communication of either overlaps with kernels of the other (Megatron-LM
/// --overlap-moe-expert-parallel-comm).
enum class PairedPasses : std::uint8_t { kNever, kWithoutPipeline, kInPipeline };

/// What other programs call a schedule.
struct LaunchNames {
  /// Megatron-LM runs it when given the sizes; it has no flag for schedules.
  bool is_megatron_default = false;
  std::string_view pytorch = {};  ///< in torch.distributed.pipelining; empty: only as a file
};

struct BubbleFormula;

// Defaults of ScheduleRule; see requirements.hpp for those of other schedules.
Placement one_chunk_placement(const ScheduleRequest& request);
int one_version(const ScheduleRequest& request, PipelineRankId device);

/// One schedule. To add a schedule, write a generator and add a row in rules.cpp; nothing else
/// lists schedules.
struct ScheduleRule {
  std::string_view name;     ///< "interleaved-1f1b"
  std::string_view summary;  ///< one line for users
  std::string_view source;   ///< paper and arXiv number
  /// Why the request is invalid, with the values and a valid alternative; empty if it is valid.
  std::optional<std::string> (*problem)(const ScheduleRequest&);
  Placement (*placement)(const ScheduleRequest&) = one_chunk_placement;
  Schedule (*generate)(const ScheduleRequest&);  ///< requires that problem() is empty
  /// Guaranteed peak of activations on a device, in micro-batches of a whole device (all its
  /// stages); verified for generated schedules by a property test.
  double (*peak_activations)(const ScheduleRequest&, PipelineRankId device);
  /// peak_activations() is the peak of the generated schedule itself, not only a limit.
  bool reaches_peak = true;
  /// Number of weight versions on a device: one for schedules that flush the pipeline at the end of
  /// a step.
  int (*weight_versions)(const ScheduleRequest&, PipelineRankId device) = one_version;
  /// Included in planner searches: one optimizer step per flush, and the best choice for some job.
  bool worth_searching = false;
  UpdateTime updates = UpdateTime::kAfterFlush;
  int output_barriers = 0;  ///< see Schedule::output_barriers
  /// Closed form of the bubble fraction (bubble_formula.hpp); null: none is known.
  BubbleFormula (*bubble)(const ScheduleRequest&) = nullptr;
  ManualOrder manual_order = ManualOrder::kUnsupported;
  PairedPasses paired_passes = PairedPasses::kNever;
  LaunchNames launch = {};
};

std::span<const ScheduleRule> schedule_rules();
inline constexpr std::string_view kDefaultSchedule = "1f1b";
/// With several chunks per device interleaved.
std::string_view default_schedule(int chunks);
/// A published schedule placed like synthesized orders ("auto"): on a line, or in waves.
std::string_view unsynthesized_schedule(int chunks);
/// Names of the rows for which `holds`, joined by `separator`.
template <class Predicate>
std::string schedule_names_if(const Predicate& holds, std::string_view separator) {
  std::string names;
  for (const ScheduleRule& rule : schedule_rules())
    if (holds(rule)) names.append(names.empty() ? "" : separator).append(rule.name);
  return names;
}
/// Returns null for unknown names.
const ScheduleRule* find_schedule_rule(std::string_view name);
std::vector<std::string> schedule_names();

/// Validates a schedule independently of the generators: every action occurs exactly once, on the
/// device of its stage; either B or both I and W; no deadlock. Each problem names the device, the
/// action and the reason. Empty if the schedule is valid.
std::vector<std::string> check_schedule(const Schedule& schedule);
/// Also checks that no device exceeds its cap; units as in peak_held_microbatches().
std::vector<std::string> check_schedule(const Schedule& schedule, std::span<const int> held_caps);

/// Peak of activations held on each device, in micro-batches of one stage: +1 at F, -1 at B or W,
/// based on the order only.
std::vector<int> peak_held_microbatches(const Schedule& schedule);

}  // namespace meshwright
