/// Figures and evaluations as text for people. Nothing is worked out here that the evaluation does
/// not say already.
#pragma once

#include <span>
#include <string>

#include "core/evaluation.hpp"
#include "core/io_plan.hpp"
#include "core/strategy_text.hpp"
#include "core/task_graph.hpp"
#include "planner/search.hpp"

namespace meshwright {

/// "12.3 %"
std::string percent(double share);
/// "1,234,567"
std::string grouped(std::int64_t count);

/// One row per plan, best first, numbered from 1.
std::string plan_table(std::span<const PlanFigures> plans);
/// Step time, throughput, bubble, memory: one line each.
std::string figures_text(const PlanFigures& figures);
/// Every part of the step that is not zero, as a share of it.
std::string step_parts_text(const Evaluation& evaluation);
/// Memory at the moment of the peak by class, one row per pipeline position: the fullest rank of
/// each.
std::string memory_table(std::span<const RankInfo> ranks, const Evaluation& evaluation);
/// Where the step of each pipeline position goes, in times; parts that are zero for all left out.
std::string breakdown_table(std::span<const RankInfo> ranks, const Evaluation& evaluation);
/// "Searched 12,345 candidates in 0.4 s: …"
std::string certificate_text(const SearchCertificate& certificate, Seconds time);

}  // namespace meshwright
