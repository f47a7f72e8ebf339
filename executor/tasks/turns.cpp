#include "executor/tasks/turns.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <map>
#include <string>
#include <thread>

#include "core/base/check.hpp"

namespace meshwright {
namespace {

/// The allowed processors, one per core: the last hardware thread of each.
std::vector<int> processors_of_cores() {
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return {};
  std::map<std::string, int> of_core;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (!CPU_ISSET(static_cast<unsigned>(i), &allowed)) continue;
    std::string core = fmt::format("alone {}", i);
    std::ifstream siblings(
        fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", i));
    std::getline(siblings, core);
    of_core[core] = i;
  }
  std::vector<int> processors;
  for (const auto& [core, processor] : of_core) processors.push_back(processor);
  std::sort(processors.begin(), processors.end());
  return processors;
}

}  // namespace

/// Starts at the processor of the caller, so that several such programs start at different ones.
Turns::Turns(int at_once) : slots_(static_cast<std::size_t>(at_once)) {
  MW_CHECK(at_once > 0);
  const std::vector<int> processors = processors_of_cores();
  if (processors.size() < slots_.size()) return;  // not enough cores: no pinning
  const auto here = std::lower_bound(processors.begin(), processors.end(), sched_getcpu());
  const auto first = static_cast<std::size_t>(here - processors.begin());
  for (std::size_t i = 0; i < slots_.size(); ++i)
    slots_[i].processor = processors[(first + i) % processors.size()];
}

int Turns::usual_number() {
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / 2);
}

void Turns::settle(RankId rank) const {
  const std::optional<int>& processor = slots_[rank.index() % slots_.size()].processor;
  if (!processor) return;
  cpu_set_t alone;
  CPU_ZERO(&alone);
  CPU_SET(static_cast<unsigned>(*processor), &alone);
  static_cast<void>(sched_setaffinity(0, sizeof alone, &alone));  // 0: the calling thread
}

void Turns::take(RankId rank, RankProgress& progress) {
  Slot& slot = slot_of(rank);
  std::unique_lock lock(slot.mutex);
  if (!slot.is_free) {
    Waiting waiting;
    slot.queue.push_back(&waiting);
    while (!waiting.is_next) {
      if (progress.must_stop) {
        std::erase(slot.queue, &waiting);
        throw PeerFailure("another rank failed");
      }
      progress.is_waiting = true;
      waiting.handed_over.wait_for(lock, kPollingInterval);
    }
  }
  progress.is_waiting = false;
  slot.is_free = false;
}

void Turns::give_back(RankId rank) {
  Slot& slot = slot_of(rank);
  const std::lock_guard lock(slot.mutex);
  slot.is_free = slot.queue.empty();
  if (slot.is_free) return;
  slot.queue.front()->is_next = true;
  slot.queue.front()->handed_over.notify_one();  // valid while the mutex is held
  slot.queue.pop_front();
}

bool Turns::is_wanted(RankId rank) {
  Slot& slot = slot_of(rank);
  const std::lock_guard lock(slot.mutex);
  return !slot.queue.empty();
}

void ActionsInTurn::enter() {
  if (has_turn_) return;
  turns_.take(rank_, progress_);
  has_turn_ = true;
  turn_began_ = std::chrono::steady_clock::now();
}

void ActionsInTurn::leave() {
  if (has_turn_) turns_.give_back(rank_);
  has_turn_ = false;
}

}  // namespace meshwright
