/// Schedule generators. Each is a pure function of the request and requires that the rule's
/// problem() is empty; rules, guarantees and sources are in rules.cpp.
#pragma once

#include <vector>

#include "core/schedule/schedule.hpp"

namespace meshwright {

/// An empty order per device, every micro-batch on route 0.
Schedule empty_schedule(std::string name, Placement placement, int microbatches);

/// The 1F1B order of one stage: `warm_up` forwards (at most m), then alternating forwards and
/// backwards, then the remaining backwards.
std::vector<Action> one_forward_one_backward(StageId stage, int microbatches, int warm_up);

/// The requested micro-batch group size, or p by default.
int microbatch_group_of(const ScheduleRequest& request);

Schedule generate_made_to_measure(const ScheduleRequest& request);
Schedule generate_naive(const ScheduleRequest& request);
Schedule generate_gpipe(const ScheduleRequest& request);
Schedule generate_1f1b(const ScheduleRequest& request);
Schedule generate_interleaved_1f1b(const ScheduleRequest& request);
Schedule generate_breadth_first(const ScheduleRequest& request);
Schedule generate_zb_h1(const ScheduleRequest& request);
Schedule generate_zb_h2(const ScheduleRequest& request);
Schedule generate_zb_v(const ScheduleRequest& request);
Schedule generate_dualpipe(const ScheduleRequest& request);
Schedule generate_dualpipev(const ScheduleRequest& request);
Schedule generate_pipedream(const ScheduleRequest& request);
Schedule generate_pipedream_2bw(const ScheduleRequest& request);
Schedule generate_vocab_1f1b(const ScheduleRequest& request);
Schedule generate_vocab_1_1f1b(const ScheduleRequest& request);
Schedule generate_interlaced_1f1b(const ScheduleRequest& request);
Schedule generate_seq1f1b(const ScheduleRequest& request);
Schedule generate_terapipe(const ScheduleRequest& request);
Schedule generate_chimera(const ScheduleRequest& request);
Schedule generate_hanayo(const ScheduleRequest& request);
Schedule generate_v_half(const ScheduleRequest& request);
Schedule generate_v_min(const ScheduleRequest& request);
Schedule generate_zb_1p(const ScheduleRequest& request);
Schedule generate_zb_2p(const ScheduleRequest& request);

}  // namespace meshwright
