#include "core/graph/task_graph.hpp"

#include <fmt/format.h>

#include <array>
#include <unordered_map>

#include "core/base/check.hpp"

namespace meshwright {
namespace {

/// "r12.compute.s3.F7": the name without "#k", which several tasks of a rank may share.
std::string plain_name(const TaskGraph& graph, const Task& task) {
  const int rank = graph.ranks[static_cast<std::size_t>(task.rank)].rank.value;
  std::string name = fmt::format("r{}.{}", rank, name_of(task.stream));
  if (task.stage >= 0) name += fmt::format(".s{}", task.stage);
  name += fmt::format(".{}", name_of(task.kind));
  if (task.kind == TaskKind::kCollective)
    name += fmt::format(".{}", name_of(graph.works[task.work.index()].collective.kind));
  if (task.microbatch >= 0) name += fmt::format("{}", task.microbatch);
  return name;
}

std::string numbered(std::string name, int count) {
  if (count > 1) name += fmt::format("#{}", count);
  return name;
}

}  // namespace

std::string_view name_of(TaskKind kind) {
  constexpr std::array<std::string_view, kTaskKindCount> kNames{
      "F", "B", "I", "W", "optimizer", "collective", "send", "receive"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string stable_name(const TaskGraph& graph, TaskId task) {
  MW_CHECK(task.value >= 0);
  MW_CHECK(task.index() < graph.tasks.size());
  const Task& wanted = graph.tasks[task.index()];
  std::string name = plain_name(graph, wanted);
  int count = 1;
  for (std::size_t i = 0; i < task.index(); ++i) {
    const Task& other = graph.tasks[i];
    if (other.rank == wanted.rank && other.stream == wanted.stream && other.kind == wanted.kind &&
        other.stage == wanted.stage && other.microbatch == wanted.microbatch &&
        plain_name(graph, other) == name)
      ++count;
  }
  return numbered(std::move(name), count);
}

std::vector<std::string> stable_names(const TaskGraph& graph) {
  std::unordered_map<std::string, int> seen;  // for lookup only; never iterated
  seen.reserve(graph.tasks.size());
  std::vector<std::string> names;
  names.reserve(graph.tasks.size());
  for (const Task& task : graph.tasks) {
    std::string name = plain_name(graph, task);
    const int count = ++seen[name];
    names.push_back(numbered(std::move(name), count));
  }
  return names;
}

}  // namespace meshwright
