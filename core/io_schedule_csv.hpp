/// PyTorch's pipeline schedule CSV (torch.distributed.pipelining.schedules): one row per device,
/// one action per cell, no header; an empty cell is an idle slot.
///
///   compute only     0F0  0I0  0W0  0B0  (0F4;7B0)OVERLAP_F_B
///   communication    0SEND_F0  1RECV_F0  1SEND_B0  0RECV_B0, UNSHARD, RESHARD, REDUCE_GRAD
///   old dialect      B is the input gradient and BW the whole backward; there is no I
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/schedule.hpp"

namespace meshwright {

enum class CsvDialect : std::uint8_t {
  kCurrent,  ///< I, W, and B for the whole backward
  kOld,      ///< B, W, and BW for the whole backward
};
enum class CsvContent : std::uint8_t { kComputeOnly, kWithCommunication };

struct ImportedSchedule {
  Schedule schedule;
  CsvDialect dialect = CsvDialect::kCurrent;
  /// What was read and left out, one line per kind.
  std::vector<std::string> notes;
};

/// Reads either content and either dialect (told by the letters: BW, or W without any I, is old).
/// Stages are where their first action is; every micro-batch passes all of them in order. Throws
/// InputError with line, cell and what is wrong there; whether the schedule is sound is for
/// check_schedule(). `name` becomes the schedule's name, `file` goes into messages.
ImportedSchedule read_schedule_csv(std::string_view text, std::string_view name,
                                   std::string_view file);

/// Throws InputError for schedules that the format cannot say: more than one route, or sequence
/// slices. With communication, a receive stands right before the action that needs it and a send
/// right after the action that made it.
std::string write_schedule_csv(const Schedule& schedule,
                               CsvContent content = CsvContent::kComputeOnly,
                               CsvDialect dialect = CsvDialect::kCurrent);

}  // namespace meshwright
