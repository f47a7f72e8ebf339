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
#include "core/units.hpp"

namespace meshwright {

/// The letters are those of PyTorch's schedule CSV.
enum class Pass : std::uint8_t {
  kForward,         ///< F
  kBackward,        ///< B: input and weight gradient together
  kBackwardInput,   ///< I: gradient of the input only
  kBackwardWeight,  ///< W: gradient of the weights only, any time after its I
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

struct Schedule {
  std::string name;
  int microbatch_count = 0;
  Placement placement;
  std::vector<int> route_of_microbatch;     ///< in Placement::routes
  std::vector<std::vector<Action>> orders;  ///< by device
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
  friend bool operator==(const ScheduleRequest&, const ScheduleRequest&) = default;
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
};

std::span<const ScheduleRule> schedule_rules();
/// Null when there is no such name.
const ScheduleRule* find_schedule_rule(std::string_view name);
std::vector<std::string> schedule_names();

/// What is wrong with a schedule, written apart from the generators: every action exactly once, on
/// the device of its stage, dependencies can be kept (no deadlock), I and W or B but not both.
/// Each names the device, the action and why. Empty: sound.
std::vector<std::string> check_schedule(const Schedule& schedule);

/// Peak of activations held on each device in units of one stage's micro-batch: +1 at F, -1 at B or
/// W, by the order alone.
std::vector<int> peak_held_microbatches(const Schedule& schedule);

}  // namespace meshwright
