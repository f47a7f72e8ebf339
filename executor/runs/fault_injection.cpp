#include "executor/runs/fault_injection.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <map>
#include <new>
#include <stdexcept>
#include <thread>

#include "core/base/check.hpp"
#include "core/base/error.hpp"
#include "core/base/number_from_text.hpp"

namespace meshwright {
namespace {

constexpr std::string_view kFlag = "--inject-fault";
constexpr std::string_view kForm = "write it as rank=1,task=F0,kind=die";
constexpr std::array kKindNames{"die", "abort", "exit", "hang", "throw", "memory", "nan"};

[[noreturn]] void refuse_fault(std::string what, std::string hint) {
  throw InputError(Diagnostic{std::string(kFlag), std::move(what), std::move(hint)});
}

std::map<std::string, std::string> parts_of(const std::string& text) {
  std::map<std::string, std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    const std::size_t equals = part.find('=');
    if (equals == std::string::npos)
      refuse_fault(fmt::format("missing '=' in '{}'", part), std::string(kForm));
    const std::string name = part.substr(0, equals);
    if (name != "rank" && name != "task" && name != "kind" && name != "step")
      refuse_fault(fmt::format("unknown key '{}'", name), "use rank, task, kind and step");
    parts[name] = part.substr(equals + 1);
    begin = end + 1;
  }
  return parts;
}

int number_in(const std::map<std::string, std::string>& parts, const std::string& name,
              int otherwise) {
  const auto found = parts.find(name);
  if (found == parts.end()) return otherwise;
  const std::string& text = found->second;
  const auto number = number_from_text<int>(text);
  if (!number || *number < 0)
    refuse_fault(fmt::format("invalid {} '{}': expected a whole number", name, text),
                 std::string(kForm));
  return *number;
}

FaultKind kind_from(const std::string& text) {
  for (std::size_t i = 0; i < kKindNames.size(); ++i)
    if (text == kKindNames[i]) return static_cast<FaultKind>(i);
  const std::vector<std::string> names(kKindNames.begin(), kKindNames.end());
  refuse_fault(fmt::format("invalid kind '{}'", text), suggest(text, names));
}

TaskId task_from(const std::string& text, int rank, const TaskGraph& graph) {
  const TextTable names = stable_names(graph);
  std::vector<std::string> of_rank;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (graph.ranks[static_cast<std::size_t>(graph.tasks[i].rank)].rank.value != rank) continue;
    if (names[i] == text || names[i].ends_with("." + text)) return TaskId(i);
    of_rank.emplace_back(names[i]);
  }
  if (of_rank.empty())
    refuse_fault(
        fmt::format("rank {} is out of range: expected 0 to {}", rank, graph.ranks.size() - 1),
        "use a rank of the plan");
  refuse_fault(fmt::format("unknown task '{}' on rank {}", text, rank), suggest(text, of_rank));
}

}  // namespace

Fault fault_from_text(const std::string& text, const TaskGraph& graph) {
  const std::map<std::string, std::string> parts = parts_of(text);
  for (const char* needed : {"task", "kind"})
    if (!parts.contains(needed))
      refuse_fault(fmt::format("missing '{}='", needed), std::string(kForm));
  const Fault fault{.task = task_from(parts.at("task"), number_in(parts, "rank", 0), graph),
                    .kind = kind_from(parts.at("kind")),
                    .step = number_in(parts, "step", 0)};
  if (fault.kind == FaultKind::kNan && graph.tasks[fault.task.index()].stage < 0)
    refuse_fault(fmt::format("task '{}' does not belong to a stage", parts.at("task")),
                 "use the task of a forward or backward pass");
  return fault;
}

void inject(FaultKind kind) {
  switch (kind) {
    case FaultKind::kDie:
      ::raise(SIGKILL);
      break;
    case FaultKind::kAbort:
      std::abort();
    case FaultKind::kExit:
      ::_exit(0);
    case FaultKind::kHang:
      for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
    case FaultKind::kMemory:
      throw std::bad_alloc();
    case FaultKind::kThrow:
      throw std::runtime_error("injected fault");
    case FaultKind::kNan:
      break;
  }
  MW_CHECK(false);
}

}  // namespace meshwright
