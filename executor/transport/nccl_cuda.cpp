// The NCCL implementation of nccl.hpp; part of the GPU plug-in.
#include <cuda_runtime.h>
#include <nccl.h>

#include <algorithm>
#include <memory>
#include <thread>
#include <utility>

#include "core/base/check.hpp"
#include "core/base/error.hpp"
#include "executor/transport/nccl.hpp"
#include "kernels/device/loaded_library.hpp"

namespace meshwright {
namespace {

using Clock = std::chrono::steady_clock;
static_assert(sizeof(NcclId) == sizeof(ncclUniqueId));

/// The functions used, resolved by name.
struct Library {
  decltype(&ncclGetVersion) get_version = nullptr;
  decltype(&ncclGetUniqueId) get_unique_id = nullptr;
  decltype(&ncclCommInitRankConfig) init = nullptr;
  decltype(&ncclCommSplit) split = nullptr;  ///< since 2.18
  decltype(&ncclCommGetAsyncError) async_error = nullptr;
  decltype(&ncclCommFinalize) finalize = nullptr;
  decltype(&ncclCommDestroy) destroy = nullptr;
  decltype(&ncclCommAbort) abort = nullptr;
  decltype(&ncclGetErrorString) error_string = nullptr;
  decltype(&ncclAllReduce) all_reduce = nullptr;
  decltype(&ncclReduceScatter) reduce_scatter = nullptr;
  decltype(&ncclAllGather) all_gather = nullptr;
  decltype(&ncclSend) send = nullptr;
  decltype(&ncclRecv) receive = nullptr;
  decltype(&ncclGroupStart) group_start = nullptr;
  decltype(&ncclGroupEnd) group_end = nullptr;
  std::string missing;
};

Library open() {
  Library l;
  LoadedLibrary opened("NCCL", "libnccl.so.2");
  opened.find(l.get_version, "ncclGetVersion");
  opened.find(l.get_unique_id, "ncclGetUniqueId");
  opened.find(l.init, "ncclCommInitRankConfig");
  opened.find_if_there(l.split, "ncclCommSplit");
  opened.find(l.async_error, "ncclCommGetAsyncError");
  opened.find(l.finalize, "ncclCommFinalize");
  opened.find(l.destroy, "ncclCommDestroy");
  opened.find(l.abort, "ncclCommAbort");
  opened.find(l.error_string, "ncclGetErrorString");
  opened.find(l.all_reduce, "ncclAllReduce");
  opened.find(l.reduce_scatter, "ncclReduceScatter");
  opened.find(l.all_gather, "ncclAllGather");
  opened.find(l.send, "ncclSend");
  opened.find(l.receive, "ncclRecv");
  opened.find(l.group_start, "ncclGroupStart");
  opened.find(l.group_end, "ncclGroupEnd");
  l.missing = opened.missing();
  return l;
}
const Library& library() {
  static const Library l = open();
  return l;
}

[[noreturn]] void fail(int rank, const std::string& what) {
  throw RuntimeFailure({.where = "NCCL, rank " + std::to_string(rank), .what = what, .hint = ""});
}

struct Joined {
  ncclComm_t comm = nullptr;
  NcclPlace place;
};
Joined& joined(void* communicator) {
  MW_CHECK(communicator != nullptr);
  return *static_cast<Joined*>(communicator);
}

/// Aborts the communicator, also while a kernel of it runs, and throws.
[[noreturn]] void abort_and_fail(Joined& j, const std::string& what) {
  if (j.comm != nullptr) library().abort(std::exchange(j.comm, nullptr));
  fail(j.place.rank, what);
}

/// Polls `is_done`; aborts and throws if the communicator fails or the timeout is reached.
template <class IsDone>
void watch(Joined& j, const char* what, const IsDone& is_done) {
  constexpr std::chrono::milliseconds kShortWait{2};
  const Clock::time_point start = Clock::now(), end = start + j.place.watchdog_timeout;
  while (true) {
    ncclResult_t state = ncclSuccess;
    const ncclResult_t asked = library().async_error(j.comm, &state);
    if (asked != ncclSuccess) state = asked;
    if (state != ncclSuccess && state != ncclInProgress)
      abort_and_fail(j, std::string(what) + ": " + library().error_string(state));
    if (state == ncclSuccess && is_done()) return;
    if (Clock::now() > end)
      abort_and_fail(j, std::string(what) + " not finished after " +
                            std::to_string(j.place.watchdog_timeout.count()) +
                            " ms: a peer is not responding");
    // Most waits are for NCCL's own thread to enqueue a kernel.
    if (Clock::now() - start < kShortWait)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

/// Waits until a call on a nonblocking communicator has completed.
void settle(Joined& j, ncclResult_t result, const char* what) {
  if (result != ncclSuccess && result != ncclInProgress)
    abort_and_fail(j, std::string(what) + ": " + library().error_string(result));
  watch(j, what, [] { return true; });
}

ncclDataType_t type_of(Dtype dtype) {
  MW_CHECK(dtype == Dtype::kFp32 || dtype == Dtype::kBf16);
  return dtype == Dtype::kBf16 ? ncclBfloat16 : ncclFloat32;
}
cudaStream_t as_stream(void* stream) { return static_cast<cudaStream_t>(stream); }
std::size_t size_of(std::int64_t count) { return static_cast<std::size_t>(count); }

void* join(const NcclPlace& place) {
  if (!library().missing.empty()) fail(place.rank, library().missing);
  auto j = std::make_unique<Joined>();
  j->place = place;
  if (const cudaError_t status = cudaSetDevice(place.device); status != cudaSuccess)
    fail(place.rank, cudaGetErrorString(status));
  ncclUniqueId id;
  std::copy(place.id.begin(), place.id.end(), id.internal);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  settle(*j, library().init(&j->comm, place.ranks, id, place.rank, &config),
         "ncclCommInitRankConfig");
  return j.release();
}

/// With nonblocking communicators both have a state; the parent's becomes ncclSuccess once the
/// child is created.
void* split(void* communicator, int color, const NcclPlace& place) {
  Joined& all = joined(communicator);
  auto j = std::make_unique<Joined>();
  j->place = place;
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  settle(all,
         library().split(all.comm, color < 0 ? NCCL_SPLIT_NOCOLOR : color, place.rank, &j->comm,
                         &config),
         "ncclCommSplit");
  if (color < 0) return nullptr;
  settle(*j, ncclInProgress, "ncclCommSplit");
  return j.release();
}

/// Finalizes together with the other members, aborts if they do not respond, and frees.
void leave(void* communicator) {
  const std::unique_ptr<Joined> j(&joined(communicator));
  if (j->comm == nullptr) return;
  settle(*j, library().finalize(j->comm), "ncclCommFinalize");
  library().destroy(std::exchange(j->comm, nullptr));
}

void all_reduce(void* communicator, const void* from, void* to, std::int64_t count, Dtype dtype,
                Reduction reduction, void* stream) {
  Joined& j = joined(communicator);
  const ncclRedOp_t op = reduction == Reduction::kSum ? ncclSum : ncclMax;
  settle(
      j,
      library().all_reduce(from, to, size_of(count), type_of(dtype), op, j.comm, as_stream(stream)),
      "ncclAllReduce");
}
void reduce_scatter(void* communicator, const void* from, void* to, std::int64_t count, Dtype dtype,
                    void* stream) {
  Joined& j = joined(communicator);
  settle(j,
         library().reduce_scatter(from, to, size_of(count), type_of(dtype), ncclSum, j.comm,
                                  as_stream(stream)),
         "ncclReduceScatter");
}
void all_gather(void* communicator, const void* from, void* to, std::int64_t count, Dtype dtype,
                void* stream) {
  Joined& j = joined(communicator);
  settle(j,
         library().all_gather(from, to, size_of(count), type_of(dtype), j.comm, as_stream(stream)),
         "ncclAllGather");
}
void exchange_all(void* communicator, std::span<const NcclTransfer> transfers, void* stream) {
  Joined& j = joined(communicator);
  const auto check = [&](ncclResult_t result, const char* what) {
    if (result != ncclSuccess && result != ncclInProgress)
      abort_and_fail(j, std::string(what) + ": " + library().error_string(result));
  };
  check(library().group_start(), "ncclGroupStart");
  for (const NcclTransfer& t : transfers) {
    if (t.sent.value > 0)
      check(library().send(t.from, size_of(t.sent.value), ncclInt8, t.peer, j.comm,
                           as_stream(stream)),
            "ncclSend");
    if (t.received.value > 0)
      check(library().receive(t.to, size_of(t.received.value), ncclInt8, t.peer, j.comm,
                              as_stream(stream)),
            "ncclRecv");
  }
  settle(j, library().group_end(), "ncclGroupEnd");
}
void exchange(void* communicator, int peer, const void* from, Bytes sent, void* to, Bytes received,
              void* stream) {
  const NcclTransfer one{peer, from, sent, to, received};
  exchange_all(communicator, std::span(&one, 1), stream);
}

void check(void* communicator) {
  Joined& j = joined(communicator);
  if (j.comm == nullptr) fail(j.place.rank, "communicator was aborted");
  ncclResult_t state = ncclSuccess;
  const ncclResult_t asked = library().async_error(j.comm, &state);
  if (asked != ncclSuccess) state = asked;
  if (state != ncclSuccess && state != ncclInProgress)
    abort_and_fail(j, library().error_string(state));
}
void abort(void* communicator) {
  Joined& j = joined(communicator);
  if (j.comm != nullptr) library().abort(std::exchange(j.comm, nullptr));
}

void wait(void* communicator, void* stream) {
  Joined& j = joined(communicator);
  watch(j, "stream", [&] {
    const cudaError_t status = cudaStreamQuery(as_stream(stream));
    if (status != cudaSuccess && status != cudaErrorNotReady)
      abort_and_fail(j, cudaGetErrorString(status));
    return status == cudaSuccess;
  });
}

NcclTable make_table() {
  NcclTable t;
  t.missing = [] { return library().missing; };
  t.version = [] {
    int version = 0;
    library().get_version(&version);
    return version;
  };
  t.make_id = [] {
    ncclUniqueId id;
    if (const ncclResult_t r = library().get_unique_id(&id); r != ncclSuccess)
      fail(0, library().error_string(r));
    NcclId copy;
    std::copy_n(id.internal, copy.size(), copy.begin());
    return copy;
  };
  t.join = join;
  t.can_split = [] { return library().split != nullptr; };
  t.split = split;
  t.leave = leave;
  t.all_reduce = all_reduce;
  t.reduce_scatter = reduce_scatter;
  t.all_gather = all_gather;
  t.exchange = exchange;
  t.exchange_all = exchange_all;
  t.check = check;
  t.abort = abort;
  t.wait = wait;
  return t;
}

}  // namespace
}  // namespace meshwright

extern "C" __attribute__((visibility("default"))) const meshwright::NcclTable* meshwright_nccl() {
  static const meshwright::NcclTable table = meshwright::make_table();
  return &table;
}
