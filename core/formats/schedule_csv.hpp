/// PyTorch's pipeline schedule CSV (torch.distributed.pipelining.schedules): one row per device,
/// one action per cell, no header; an empty cell is an idle slot.
///
///   compute only     0F0  0I0  0W0  0B0  (0F4;7B0)OVERLAP_F_B
///   communication    0SEND_F0  1RECV_F0  1SEND_B0  0RECV_B0, UNSHARD, RESHARD, REDUCE_GRAD
///   old dialect      B is the input gradient and BW the full backward; I is not used
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/schedule/schedule.hpp"

namespace meshwright {

enum class CsvDialect : std::uint8_t {
  kCurrent,  ///< I, W, and B for the full backward
  kOld,      ///< B, W, and BW for the full backward
};
enum class CsvContent : std::uint8_t { kComputeOnly, kWithCommunication };

struct ImportedSchedule {
  Schedule schedule;
  CsvDialect dialect = CsvDialect::kCurrent;
  /// Actions that were read and ignored, one line per type.
  std::vector<std::string> notes;
};

/// Reads either content and either dialect (BW, or W without any I, means the old dialect). A stage
/// is placed on the device of its first action; every micro-batch visits all stages in order.
/// Throws InputError with line and cell; call check_schedule() to validate the schedule itself.
/// `name` becomes the schedule's name, `file` is used in error messages.
ImportedSchedule read_schedule_csv(std::string_view text, std::string_view name,
                                   std::string_view file);

/// Throws InputError for schedules that the format cannot express: several routes, sequence slices,
/// or a split output layer. With communication, a receive is written immediately before the action
/// that needs it and a send immediately after the action that produced the data.
std::string write_schedule_csv(const Schedule& schedule,
                               CsvContent content = CsvContent::kComputeOnly,
                               CsvDialect dialect = CsvDialect::kCurrent);

}  // namespace meshwright
