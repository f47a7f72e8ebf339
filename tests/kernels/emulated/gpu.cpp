#include "tests/kernels/emulated/gpu.hpp"

#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <stdexcept>

namespace emulated {

constinit thread_local Dim thread_index, block_index, block_dim, grid_dim;

namespace {

constexpr std::size_t kStackBytes = std::size_t{128} << 10;
constexpr std::size_t kSharedBytes = std::size_t{227} << 10;  ///< of Hopper
constexpr std::size_t kSharedBytesUnasked = std::size_t{48} << 10;
bool descending = false;

[[noreturn]] void fail(const char* what) { throw std::logic_error(what); }

// ---- fibers ----

#ifdef __x86_64__

/// A suspended fiber: its stack pointer; callee-saved registers are on the stack (System V ABI).
/// Ten times faster than swapcontext(), which makes a system call.
using Fiber = void*;

extern "C" void meshwright_switch_fiber(Fiber* from, Fiber to);
asm(R"(
.text
.type meshwright_switch_fiber, @function
meshwright_switch_fiber:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size meshwright_switch_fiber, .-meshwright_switch_fiber
)");

/// The first switch to the fiber returns into `begin`, as if it had been called.
void make_fiber(Fiber& fiber, std::byte* stack, void (*begin)()) {
  auto top = reinterpret_cast<std::uintptr_t>(stack + kStackBytes) / 16 * 16;
  auto* words = reinterpret_cast<std::uintptr_t*>(top) - 8;
  std::fill_n(words, 8, std::uintptr_t{0});
  words[6] = reinterpret_cast<std::uintptr_t>(begin);
  fiber = words;
}
void switch_fiber(Fiber& from, Fiber& to) { meshwright_switch_fiber(&from, to); }

#else

using Fiber = ucontext_t;
void make_fiber(Fiber& fiber, std::byte* stack, void (*begin)()) {
  ::getcontext(&fiber);
  fiber.uc_stack.ss_sp = stack;
  fiber.uc_stack.ss_size = kStackBytes;
  fiber.uc_link = nullptr;
  ::makecontext(&fiber, begin, 0);
}
void switch_fiber(Fiber& from, Fiber& to) { ::swapcontext(&from, &to); }

#endif

/// Memory followed by a guard page.
class Guarded {
 public:
  Guarded() {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    size_ = (kSharedBytes + page - 1) / page * page;
    void* memory = ::mmap(nullptr, size_ + page, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    MW_CHECK(memory != MAP_FAILED);
    memory_ = static_cast<std::byte*>(memory);
    MW_CHECK(::mprotect(memory_ + size_, page, PROT_NONE) == 0);
  }
  std::byte* last(std::size_t bytes) { return memory_ + size_ - (bytes + 127) / 128 * 128; }

 private:
  std::byte* memory_ = nullptr;
  std::size_t size_ = 0;
};

enum class State { kRuns, kAtBarrier, kAtWarp, kDone };

struct Copy {
  void* to;
  const void* from;
  std::size_t bytes;
};

struct Thread {
  Fiber fiber{};
  std::unique_ptr<std::byte[]> stack;
  State state = State::kDone;
  bool has_begun = false;
  unsigned mask = 0;
  void (*exchange)(Lanes, unsigned) = nullptr;
  void* brought = nullptr;
  std::deque<std::vector<Copy>> groups;
  std::vector<Copy> open_group;
};

/// The running block and its threads, which are fibers of a single system thread.
struct Block {
  std::deque<Thread> threads;
  int count = 0, current = -1;
  Fiber scheduler{};
  const std::function<void()>* body = nullptr;
  std::byte* shared = nullptr;
};
thread_local Block block;

Thread& me() {
  MW_CHECK(block.current >= 0);
  return block.threads[static_cast<std::size_t>(block.current)];
}
Thread& thread_at(int number) { return block.threads[static_cast<std::size_t>(number)]; }

void yield(State state) {
  Thread& mine = me();
  mine.state = state;
  switch_fiber(mine.fiber, block.scheduler);
}

void begin_fiber() {
  (*block.body)();
  yield(State::kDone);
}

void resume(int number) {
  Thread& thread = thread_at(number);
  block.current = number;
  thread_index.x = static_cast<unsigned>(number) % block_dim.x;
  thread_index.y = static_cast<unsigned>(number) / block_dim.x % block_dim.y;
  thread_index.z = static_cast<unsigned>(number) / (block_dim.x * block_dim.y);
  if (!thread.has_begun) {
    thread.has_begun = true;
    make_fiber(thread.fiber, thread.stack.get(), begin_fiber);
  }
  switch_fiber(block.scheduler, thread.fiber);
  block.current = -1;
}

/// Lanes of a warp that have all arrived exchange their values and continue.
bool release(int first, int end) {
  bool any = false;
  for (int lane = first; lane < end; ++lane) {
    const Thread& asks = thread_at(lane);
    if (asks.state != State::kAtWarp) continue;
    if ((asks.mask >> (lane - first) & 1U) == 0) fail("a lane is not in its own mask");
    void* brought[kLanes] = {};
    bool all = true;
    for (int other = 0; other < kLanes; ++other) {
      if ((asks.mask >> other & 1U) == 0) continue;
      if (first + other >= end) fail("a mask names lanes that the warp does not have");
      Thread& of = thread_at(first + other);
      if (of.state == State::kDone) fail("a lane has exited while others wait for it");
      all =
          all && of.state == State::kAtWarp && of.mask == asks.mask && of.exchange == asks.exchange;
      brought[other] = of.brought;
    }
    if (!all) continue;
    const unsigned mask = asks.mask;
    asks.exchange(brought, mask);
    for (int other = 0; other < kLanes; ++other)
      if ((mask >> other & 1U) != 0) thread_at(first + other).state = State::kRuns;
    any = true;
  }
  return any;
}

/// Runs a warp until all its lanes have exited or wait at the block's barrier.
void run_warp(int first, int end) {
  do {
    for (int i = 0; i < end - first; ++i) {
      const int lane = descending ? end - 1 - i : first + i;
      if (thread_at(lane).state == State::kRuns) resume(lane);
    }
  } while (release(first, end));
  for (int lane = first; lane < end; ++lane)
    if (thread_at(lane).state == State::kAtWarp)
      fail("lanes of a warp wait for others that have diverged");
}

void run_block() {
  for (int i = 0; i < block.count; ++i) {
    Thread& thread = thread_at(i);
    thread.state = State::kRuns;
    thread.has_begun = false;
    thread.groups.clear();
    thread.open_group.clear();
  }
  const int warps = (block.count + kLanes - 1) / kLanes;
  bool goes_on = true;
  while (goes_on) {
    for (int i = 0; i < warps; ++i) {
      const int warp = descending ? warps - 1 - i : i;
      run_warp(warp * kLanes, std::min(block.count, (warp + 1) * kLanes));
    }
    goes_on = false;
    for (int i = 0; i < block.count; ++i) {
      if (thread_at(i).state != State::kAtBarrier) continue;
      thread_at(i).state = State::kRuns;
      goes_on = true;
    }
  }
}

}  // namespace

void set_descending_order(bool is_descending) { descending = is_descending; }

namespace {
thread_local void (*told_of_work)(bool) = nullptr;
}
void set_on_work(void (*on_work)(bool begins)) { told_of_work = on_work; }
DeviceAtWork::DeviceAtWork() {
  if (told_of_work != nullptr) told_of_work(true);
}
DeviceAtWork::~DeviceAtWork() {
  if (told_of_work != nullptr) told_of_work(false);
}

void meet_block() { yield(State::kAtBarrier); }

void meet_warp(unsigned mask, void (*exchange)(Lanes, unsigned), void* mine) {
  Thread& thread = me();
  thread.mask = mask;
  thread.exchange = exchange;
  thread.brought = mine;
  yield(State::kAtWarp);
}

std::byte* dynamic_shared_memory() { return block.shared; }

void copy_later(void* to, const void* from, std::size_t bytes) {
  if (reinterpret_cast<std::uintptr_t>(to) % bytes != 0 ||
      reinterpret_cast<std::uintptr_t>(from) % bytes != 0)
    fail("a copy into shared memory is not aligned");
  me().open_group.push_back({to, from, bytes});
}
void end_group_of_copies() {
  me().groups.push_back(std::move(me().open_group)), me().open_group = {};
}
void wait_for_copies(std::size_t groups_that_may_be_missing) {
  auto& groups = me().groups;
  for (; groups.size() > groups_that_may_be_missing; groups.pop_front())
    for (const Copy& copy : groups.front()) std::memcpy(copy.to, copy.from, copy.bytes);
}

std::map<const void*, std::size_t>& allowed_shared_bytes() {
  static std::map<const void*, std::size_t> allowed;
  return allowed;
}

void run(const Launch& launch, const void* kernel, const std::function<void()>& thread) {
  const DeviceAtWork at_work;
  static thread_local Guarded shared;
  const std::size_t threads = std::size_t{launch.block.x} * launch.block.y * launch.block.z;
  if (threads == 0 || threads > 1024) fail("invalid block size");
  if (launch.grid.x == 0 || launch.grid.x > 0x7FFFFFFFU || launch.grid.y == 0 ||
      launch.grid.y > 65535 || launch.grid.z == 0 || launch.grid.z > 65535)
    fail("invalid grid size");
  const auto allowed = allowed_shared_bytes().find(kernel);
  const std::size_t most =
      allowed == allowed_shared_bytes().end() ? kSharedBytesUnasked : allowed->second;
  if (launch.shared_bytes > most || most > kSharedBytes) fail("more shared memory than is allowed");
  block.count = static_cast<int>(threads);
  while (block.threads.size() < threads)
    block.threads.emplace_back().stack = std::make_unique<std::byte[]>(kStackBytes);
  block.body = &thread;
  block.shared = shared.last(launch.shared_bytes);
  block_dim = launch.block;
  grid_dim = launch.grid;
  for (unsigned z = 0; z < launch.grid.z; ++z)
    for (unsigned y = 0; y < launch.grid.y; ++y)
      for (unsigned x = 0; x < launch.grid.x; ++x) {
        block_index = Dim(x, y, z);
        std::memset(block.shared, 0xFF, launch.shared_bytes);  // NaN
        run_block();
      }
}

}  // namespace emulated
