#include "core/lowering/lowering_pass.hpp"

#include <fmt/format.h>

#include <array>

#include "core/base/error.hpp"
#include "core/lowering/lowering_context.hpp"

namespace meshwright {
namespace {

template <class List>
std::int64_t count_of(const List& list) {
  return static_cast<std::int64_t>(list.size());
}

Bytes saved_activations(const LoweringContext& context) {
  Bytes sum;
  for (const StageWorks& works : context.stages)
    sum += total(context.graph().works[works.forward.index()].acquired);
  return sum;
}

/// What show --lowering reports, in this order.
struct Figure {
  std::string_view name;
  std::int64_t (*of)(const LoweringContext& context);
};
constexpr std::array kFigures{
    Figure{"stages",
           [](const LoweringContext& c) { return count_of(c.placement.device_of_stage); }},
    Figure{"layer classes",
           [](const LoweringContext& c) {
             return c.variants.empty() ? 0 : count_of(c.variants.front().classes);
           }},
    Figure{"parts", [](const LoweringContext& c) { return count_of(c.graph().parts); }},
    Figure{"parameters",
           [](const LoweringContext& c) {
             std::int64_t sum = 0;
             for (const PartParameters& part : c.parameters)
               sum += part.local.dense + part.local.expert;
             return sum;
           }},
    Figure{"units",
           [](const LoweringContext& c) {
             std::int64_t sum = 0;
             for (const PartUnits& part : c.units) sum += count_of(part.units);
             return sum;
           }},
    Figure{"works", [](const LoweringContext& c) { return count_of(c.graph().works); }},
    Figure{"parts of works",
           [](const LoweringContext& c) {
             std::int64_t sum = 0;
             for (const Work& work : c.graph().works)
               for (const WorkPartUse& use : work.parts) sum += use.count;
             return sum;
           }},
    Figure{"program steps",
           [](const LoweringContext& c) {
             std::int64_t sum = 0;
             for (const WorkProgram& program : c.graph().programs) sum += count_of(program.steps);
             return sum;
           }},
    Figure{"activation bytes", [](const LoweringContext& c) { return saved_activations(c).value; }},
    Figure{"resident bytes",
           [](const LoweringContext& c) {
             Bytes sum;
             for (const MemoryAmounts& amounts : c.resident) sum += total(amounts);
             return sum.value;
           }},
    Figure{"actions",
           [](const LoweringContext& c) {
             std::int64_t sum = 0;
             for (const auto& order : c.schedule.orders) sum += count_of(order);
             return sum;
           }},
    Figure{"ranks", [](const LoweringContext& c) { return count_of(c.graph().ranks); }},
    Figure{"tasks", [](const LoweringContext& c) { return count_of(c.graph().tasks); }},
    Figure{"dependencies",
           [](const LoweringContext& c) { return count_of(c.graph().dependencies); }},
    Figure{"collectives", [](const LoweringContext& c) { return count_of(c.graph().collectives); }},
};
using Figures = std::array<std::int64_t, kFigures.size()>;

Figures figures_of(const LoweringContext& context) {
  Figures figures{};
  for (std::size_t i = 0; i < figures.size(); ++i) figures[i] = kFigures[i].of(context);
  return figures;
}

PassReport report_of(std::string_view pass, const Figures& before, const Figures& after) {
  PassReport report{.pass = pass, .changes = {}};
  for (std::size_t i = 0; i < before.size(); ++i)
    if (before[i] != after[i]) report.changes.push_back({kFigures[i].name, before[i], after[i]});
  return report;
}

#ifdef NDEBUG
constexpr bool kChecksAlways = false;
#else
constexpr bool kChecksAlways = true;
#endif

void check_after(std::string_view pass, const TaskGraph& graph) {
  if (const auto found = check_task_graph(graph); !found.empty())
    throw InternalError(fmt::format("after lowering pass '{}': {}", pass, found.front()));
}

}  // namespace

void run_passes(std::span<const LoweringPass> passes, LoweringContext& context,
                std::vector<PassReport>* reports) {
  for (const LoweringPass& pass : passes) {
    const Figures before = reports != nullptr ? figures_of(context) : Figures{};
    pass.run(context);
    if (kChecksAlways || context.options.check_each_pass) check_after(pass.name, context.graph());
    if (reports != nullptr) reports->push_back(report_of(pass.name, before, figures_of(context)));
  }
}

}  // namespace meshwright
