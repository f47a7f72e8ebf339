#include "executor/tasks/compute_slots.hpp"

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
  processors.reserve(of_core.size());
  for (const auto& [core, processor] : of_core) processors.push_back(processor);
  std::sort(processors.begin(), processors.end());
  return processors;
}

}  // namespace

/// Starts at the processor of the caller, so that several such programs start at different ones.
ComputeSlots::ComputeSlots(int at_once) : slots_(static_cast<std::size_t>(at_once)) {
  MW_CHECK(at_once > 0);
  const std::vector<int> processors = processors_of_cores();
  if (processors.size() < slots_.size()) return;  // not enough cores: no pinning
  const auto here = std::lower_bound(processors.begin(), processors.end(), sched_getcpu());
  const auto first = static_cast<std::size_t>(here - processors.begin());
  for (std::size_t i = 0; i < slots_.size(); ++i)
    slots_[i].processor = processors[(first + i) % processors.size()];
}

int ComputeSlots::default_count() {
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / 2);
}

void ComputeSlots::pin(RankId rank) const {
  const std::optional<int>& processor = slots_[rank.index() % slots_.size()].processor;
  if (!processor) return;
  cpu_set_t alone;
  CPU_ZERO(&alone);
  CPU_SET(static_cast<unsigned>(*processor), &alone);
  static_cast<void>(sched_setaffinity(0, sizeof alone, &alone));  // 0: the calling thread
}

void ComputeSlots::acquire(RankId rank, RankProgress& progress) {
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
      waiting.granted.wait_for(lock, kPollingInterval);
    }
  }
  progress.is_waiting = false;
  slot.is_free = false;
}

void ComputeSlots::release(RankId rank) {
  Slot& slot = slot_of(rank);
  const std::lock_guard lock(slot.mutex);
  slot.is_free = slot.queue.empty();
  if (slot.is_free) return;
  slot.queue.front()->is_next = true;
  slot.queue.front()->granted.notify_one();  // valid while the mutex is held
  slot.queue.pop_front();
}

bool ComputeSlots::is_contended(RankId rank) {
  Slot& slot = slot_of(rank);
  const std::lock_guard lock(slot.mutex);
  return !slot.queue.empty();
}

void ThrottledActions::acquire_slot() {
  if (has_slot_) return;
  slots_.acquire(rank_, progress_);
  has_slot_ = true;
  acquired_at_ = std::chrono::steady_clock::now();
}

void ThrottledActions::release_slot() {
  if (has_slot_) slots_.release(rank_);
  has_slot_ = false;
}

}  // namespace meshwright
