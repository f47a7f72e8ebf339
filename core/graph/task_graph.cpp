#include "core/graph/task_graph.hpp"

#include <array>
#include <unordered_map>

#include "core/base/append_number.hpp"
#include "core/base/check.hpp"

namespace meshwright {
namespace {

/// "r12.compute.s3.F7": the name without "#k", which several tasks of a rank may share.
void append_plain_name(std::string& text, const TaskGraph& graph, const Task& task) {
  text += 'r';
  append_number(text, graph.ranks[static_cast<std::size_t>(task.rank)].rank.value);
  text += '.';
  text += name_of(task.stream);
  if (task.stage >= 0) {
    text += ".s";
    append_number(text, task.stage);
  }
  text += '.';
  text += name_of(task.kind);
  if (task.kind == TaskKind::kCollective) {
    text += '.';
    text += name_of(graph.works[task.work.index()].collective.kind);
  }
  if (task.microbatch >= 0) append_number(text, task.microbatch);
}

void append_repeat(std::string& text, int count) {
  if (count <= 1) return;
  text += '#';
  append_number(text, count);
}

/// What append_plain_name() depends on.
struct NameKey {
  std::uint64_t place, pass;
  friend bool operator==(const NameKey&, const NameKey&) = default;
};
NameKey key_of(const TaskGraph& graph, const Task& task) {
  const bool is_collective = task.kind == TaskKind::kCollective;
  const auto collective =
      is_collective ? static_cast<std::uint64_t>(graph.works[task.work.index()].collective.kind)
                    : 0;
  return {.place = static_cast<std::uint64_t>(static_cast<std::uint32_t>(task.rank)) << 32 |
                   static_cast<std::uint64_t>(static_cast<std::uint16_t>(task.stage)) << 16 |
                   static_cast<std::uint64_t>(task.stream) << 8 |
                   static_cast<std::uint64_t>(task.kind),
          .pass = static_cast<std::uint64_t>(static_cast<std::uint32_t>(task.microbatch)) << 8 |
                  collective};
}
struct HashOfKey {
  std::size_t operator()(const NameKey& key) const {
    constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15;  // 2^64 / the golden ratio
    const std::uint64_t mixed = (key.place * kOdd ^ key.pass) * kOdd;
    return static_cast<std::size_t>(mixed ^ mixed >> 32);
  }
};

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
  const NameKey key = key_of(graph, wanted);
  int count = 1;
  for (std::size_t i = 0; i < task.index(); ++i) count += key_of(graph, graph.tasks[i]) == key;
  std::string name;
  append_plain_name(name, graph, wanted);
  append_repeat(name, count);
  return name;
}

TextTable stable_names(const TaskGraph& graph) {
  std::unordered_map<NameKey, int, HashOfKey> seen;  // for lookup only; never iterated
  seen.reserve(graph.tasks.size());
  constexpr std::size_t kUsualLength = 24;
  TextTable names;
  names.reserve(graph.tasks.size(), kUsualLength * graph.tasks.size());
  std::string name;
  for (const Task& task : graph.tasks) {
    name.clear();
    append_plain_name(name, graph, task);
    append_repeat(name, ++seen[key_of(graph, task)]);
    names.push_back(name);
  }
  return names;
}

}  // namespace meshwright
