/// Figures and evaluations as text. Everything shown is computed by evaluate().
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "cli/terminal/document.hpp"
#include "core/base/error.hpp"
#include "core/cluster/cluster.hpp"
#include "core/formats/plan.hpp"
#include "core/graph/task_graph.hpp"
#include "core/plan/strategy_text.hpp"
#include "core/timeline/evaluation.hpp"
#include "planner/search/search.hpp"

namespace meshwright {

/// One row per plan, best first, numbered from 1, and a line that defines the shares. `more`:
/// columns to add, with one row per plan; may be empty.
Document plan_table(std::span<const PlanFigures> plans, const Table& more = {});
/// "6.9 % (busiest rank 4.3 %)": bubble fractions of the period, see core/timeline/evaluation.hpp.
std::string bubble_text(const PlanFigures& figures);
/// "64 of 72 GPUs per node used\n"; empty if a job of `ranks` ranks fills its nodes or fits in one.
std::string partial_nodes_text(const Cluster& cluster, std::int64_t ranks);
/// Step time, throughput, utilization, bubble, exposed communication, memory: one line each.
std::vector<NamedValue> figures_list(const PlanFigures& figures);
/// The nonzero components of the step as shares, means over ranks; the text defines the bubble.
Table step_parts_table(const Evaluation& evaluation);
Document step_parts_text(const Evaluation& evaluation);
/// Memory by class at the peak. One row per pipeline rank: its rank with the highest peak.
Table memory_table(std::span<const RankInfo> ranks, const Evaluation& evaluation);
/// The components of the step as times, for the same ranks; components that are zero for all of
/// them are omitted.
Table breakdown_table(std::span<const RankInfo> ranks, const Evaluation& evaluation);
/// {"step_shares": …, "ranks": [{"pipeline", "multiplicity", "step_ns", "peak_memory_bytes"}, …]}:
/// what the two tables show, for every rank of the graph.
std::string ranks_json(std::span<const RankInfo> ranks, const Evaluation& evaluation);
/// "Searched 12,345 candidates in 0.4 s: …"
std::string certificate_text(const SearchCertificate& certificate, Seconds time);
/// "Cost model: …; unvalidated."; for CostModel::provenance() and CostModel::validation().
std::string cost_model_text(std::string_view provenance, std::string_view validation);

/// [{"where": …, "what": …, "hint": …}, …]
std::string problems_json(std::span<const Diagnostic> problems);

}  // namespace meshwright
