/// Requirements and guarantees of schedules: the function columns of rules.cpp. A Problem
/// is a lower-case sentence with the values and a valid alternative; empty if the request is valid.
#pragma once

#include <optional>
#include <string>

#include "core/schedule/schedule.hpp"

namespace meshwright {

using Problem = std::optional<std::string>;

Problem one_chunk_problem(const ScheduleRequest& request);
Problem several_chunks_problem(const ScheduleRequest& request);
Problem interleaved_problem(const ScheduleRequest& request);
/// Two chunks per device: the V placement.
Problem two_chunks_problem(const ScheduleRequest& request);
Problem dualpipe_problem(const ScheduleRequest& request);
Problem dualpipev_problem(const ScheduleRequest& request);
Problem automatic_problem(const ScheduleRequest& request);
/// Two chunks per device, and valid costs.
Problem automatic_v_problem(const ScheduleRequest& request);
/// A line (one chunk) or waves (an even number of chunks).
Problem synthesized_problem(const ScheduleRequest& request);
Problem slices_problem(const ScheduleRequest& request);
Problem two_versions_problem(const ScheduleRequest& request);
Problem chimera_problem(const ScheduleRequest& request);
Problem hanayo_problem(const ScheduleRequest& request);
/// One chunk per device; times, if given, for every stage.
Problem vocabulary_problem(const ScheduleRequest& request);

Placement loop_of_request(const ScheduleRequest& request);
Placement v_of_request(const ScheduleRequest& request);
Placement bidirectional_of_request(const ScheduleRequest& request);
Placement waves_of_request(const ScheduleRequest& request);
Placement line_or_waves(const ScheduleRequest& request);

// Guaranteed peaks, in micro-batches of a whole device.
double one_microbatch(const ScheduleRequest& request, PipelineRankId device);
double all_microbatches(const ScheduleRequest& request, PipelineRankId device);
double one_per_remaining_device(const ScheduleRequest& request, PipelineRankId device);
double interleaved_peak(const ScheduleRequest& request, PipelineRankId device);
double one_per_device(const ScheduleRequest& request, PipelineRankId device);
double zb_h2_peak(const ScheduleRequest& request, PipelineRankId device);
double dualpipe_peak(const ScheduleRequest& request, PipelineRankId device);
double dualpipev_peak(const ScheduleRequest& request, PipelineRankId device);
double zb_1p_peak(const ScheduleRequest& request, PipelineRankId device);
double zb_2p_peak(const ScheduleRequest& request, PipelineRankId device);
double zb_v_peak(const ScheduleRequest& request, PipelineRankId device);
double v_half_peak(const ScheduleRequest& request, PipelineRankId device);
double v_min_peak(const ScheduleRequest& request, PipelineRankId device);
double seq1f1b_peak(const ScheduleRequest& request, PipelineRankId device);
double vocab_peak(const ScheduleRequest& request, PipelineRankId device);
double vocab_1_peak(const ScheduleRequest& request, PipelineRankId device);
double interlaced_peak(const ScheduleRequest& request, PipelineRankId device);

int stashed_versions(const ScheduleRequest& request, PipelineRankId device);
int two_versions(const ScheduleRequest& request, PipelineRankId device);

}  // namespace meshwright
