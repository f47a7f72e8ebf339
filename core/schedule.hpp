/// Pipeline schedules: who does what in which order. Pure data and pure generators.
///
/// A *device* here is one position of the pipeline, 0..p-1. A *stage* is one model chunk: a device
/// holds one or more of them. Devices carry out their orders strictly in sequence; an action starts
/// when its device is free and its inputs have arrived.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/ids.hpp"
#include "core/stage_times.hpp"
#include "core/units.hpp"

namespace meshwright {

/// The letters are those of PyTorch's schedule CSV; S and T, which it does not know, are those of
/// Yeung et al., arXiv:2411.05288.
enum class Pass : std::uint8_t {
  kForward,         ///< F
  kBackward,        ///< B: input and weight gradient together
  kBackwardInput,   ///< I: gradient of the input only
  kBackwardWeight,  ///< W: gradient of the weights only, any time after its I
  kOutputScores,    ///< S: this device's share of the output layer's scores (its words)
  kOutputGradient,  ///< T: gradients of that share, any time after S of all devices
};
char letter_of(Pass pass);

struct Action {
  StageId stage;
  Pass pass = Pass::kForward;
  MicrobatchId microbatch;
  /// Starts together with the next action of this device and ends with it: PyTorch's
  /// (0F4;7B0)OVERLAP_F_B. The pair waits for the inputs of both.
  bool overlaps_next = false;
  friend bool operator==(const Action&, const Action&) = default;
};

/// Which device holds which stage, and the way of a micro-batch through them.
struct Placement {
  int devices = 1;
  /// Where each stage runs; its size is the number of stages.
  std::vector<PipelineRankId> device_of_stage;
  /// Which part of the model each stage holds. Identity but for bidirectional schedules, where two
  /// stages hold replicas of one part.
  std::vector<int> part_of_stage;
  /// Stages that a micro-batch passes, first to last. One route but for bidirectional schedules.
  std::vector<std::vector<StageId>> routes;
  friend bool operator==(const Placement&, const Placement&) = default;
};
/// Stage s on device s mod p: one chunk per device (v = 1), or Megatron's loop.
Placement looped_placement(int devices, int chunks);
/// Waves: even chunks run down the devices, odd chunks back up, so that stage 2p - 1 - d is with
/// stage d. Two chunks are the V of ZB-V; Hanayo's W waves are 2 W chunks.
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
  /// k > 1: micro-batch u stands for sequence slice u mod k of micro-batch u / k. On every stage
  /// the forwards of its slices run first to last and the backwards last to first.
  int slices_per_microbatch = 1;
  /// Where the output layer is split over the devices (Vocabulary Parallelism, arXiv:2411.05288):
  /// barriers of all devices between the last forward of a micro-batch and its first backward.
  /// 0: not split, the output layer belongs to the last stage, there are no S and T. 1: S of all
  /// stages (Vocab-2, where S makes the gradient of the input as well). 2: S of all, then T of all
  /// (Vocab-1). One stage per device then, and its S and T carry that stage.
  int output_barriers = 0;
  friend bool operator==(const Schedule&, const Schedule&) = default;
};

/// "0F0 0F1 0B0": stage, letter, micro-batch; overlapped pairs as "(0F4;7B0)".
std::string to_text(std::span<const Action> order);
/// Inverse of to_text. Throws InputError naming the word that is wrong.
std::vector<Action> order_from_text(std::string_view text);

/// What a generator is asked for.
struct ScheduleRequest {
  int devices = 1;       ///< p
  int chunks = 1;        ///< v: stages per device
  int microbatches = 1;  ///< m
  /// Micro-batches that run through one chunk before the device turns to its next chunk (Megatron's
  /// microbatch_group_size_per_vp_stage). None: p.
  std::optional<int> microbatch_group;
  /// Equal pieces of the sequence of one micro-batch (Seq1F1B, TeraPipe). None: 1.
  std::optional<int> slices;
  /// What cost-driven generators decide by. None: every pass of a stage lasts the same.
  std::optional<StageTimes> times;
  /// Most micro-batches of a whole device that cost-driven generators may hold. None: the
  /// schedule's own.
  std::optional<double> activation_cap;
  /// Fraction of an activation that the input gradient frees already; for the cap alone.
  double freed_by_input_gradient = 0;
  friend bool operator==(const ScheduleRequest&, const ScheduleRequest&) = default;
};

/// When a stage updates its weights.
enum class UpdateTime : std::uint8_t {
  kAfterFlush,      ///< once a step, when the pipeline has run empty
  kEachMicrobatch,  ///< behind every backward pass; the pipeline stays full
  kEachStep         ///< behind a step's last backward pass; the pipeline stays full
};

/// One row of the zoo. Adding a schedule = one generator and one row in schedule_rules.cpp.
struct ScheduleRule {
  std::string_view name;     ///< "interleaved-1f1b"
  std::string_view summary;  ///< one line for people
  std::string_view source;   ///< paper and arXiv number
  /// What makes the request impossible, with the numbers and what would be right; nothing if fine.
  std::optional<std::string> (*problem)(const ScheduleRequest&);
  Placement (*placement)(const ScheduleRequest&);
  Schedule (*generate)(const ScheduleRequest&);  ///< only when problem() is empty
  /// Promised peak of activations on a device, in micro-batches of a whole device (all its
  /// stages); kept by every generated schedule (a property test).
  double (*peak_activations)(const ScheduleRequest&, PipelineRankId device);
  /// Versions of the weights that a device keeps: one for every schedule that flushes the pipeline
  /// at the end of a step.
  int (*weight_versions)(const ScheduleRequest&, PipelineRankId device);
  /// Planners try it: one optimizer step a flush, and the best choice for some job.
  bool worth_searching = false;
  UpdateTime updates = UpdateTime::kAfterFlush;
};

std::span<const ScheduleRule> schedule_rules();
/// Null when there is no such name.
const ScheduleRule* find_schedule_rule(std::string_view name);
std::vector<std::string> schedule_names();

/// What is wrong with a schedule, written apart from the generators: every action exactly once, on
/// the device of its stage, dependencies can be kept (no deadlock), I and W or B but not both.
/// Each names the device, the action and why. Empty: sound.
std::vector<std::string> check_schedule(const Schedule& schedule);
/// The same, and no device may hold more than its cap; units as in peak_held_microbatches().
std::vector<std::string> check_schedule(const Schedule& schedule, std::span<const int> held_caps);

/// Peak of activations held on each device in units of one stage's micro-batch: +1 at F, -1 at B or
/// W, by the order alone.
std::vector<int> peak_held_microbatches(const Schedule& schedule);

}  // namespace meshwright
