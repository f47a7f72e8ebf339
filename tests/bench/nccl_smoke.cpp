/// Smoke test of NCCL with two processes as ranks: on two GPUs, or both on one GPU, which NCCL
/// allows if they claim to be different hosts (NCCL_HOSTID, since 2.18). Results of collectives are
/// compared with exact sums; then one rank exits and the other must detect that within its watchdog
/// timeout.
///
///   nccl_smoke        exits with 0, 1 (failed) or 4 (no device or no NCCL)
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "core/base/error.hpp"
#include "executor/transport/nccl.hpp"
#include "kernels/device/backend_plugin.hpp"

namespace meshwright {
namespace {

constexpr std::int64_t kCount = 1 << 20;

/// Rank 0 writes the ID to a file, the other rank waits for it.
NcclId agree(const std::string& file, int rank) {
  NcclId id{};
  if (rank == 0) {
    id = nccl_table(Backend::kCuda)->make_id();
    std::ofstream(file + ".part", std::ios::binary).write(id.data(), id.size());
    std::filesystem::rename(file + ".part", file);
    return id;
  }
  for (int i = 0; i < 2000 && !std::filesystem::exists(file); ++i) ::usleep(10'000);
  std::ifstream(file, std::ios::binary).read(id.data(), id.size());
  return id;
}

bool all_equal(const DeviceTable& device, const void* memory, std::int64_t count, float value) {
  std::vector<float> host(static_cast<std::size_t>(count));
  device.copy(host.data(), memory, Bytes(4 * count), nullptr);
  device.wait_for_stream(nullptr);
  for (const float x : host)
    if (x != value) return false;
  return true;
}

/// Sets variables that NCCL reads on first use.
void share_one_gpu(int rank) {
  ::setenv("NCCL_HOSTID", rank == 0 ? "one" : "two", 1);
  for (const auto& [name, value] : {std::pair{"NCCL_NET", "Socket"},
                                    {"NCCL_IB_DISABLE", "1"},
                                    {"NCCL_SOCKET_IFNAME", "lo"},
                                    {"NCCL_MNNVL_ENABLE", "0"},
                                    {"NCCL_NVLS_ENABLE", "0"},
                                    {"NCCL_ALGO", "Ring"},
                                    {"NCCL_PROTO", "Simple"},
                                    {"NCCL_MAX_CTAS", "2"}})
    ::setenv(name, value, 0);
}

/// Runs a rank; returns the exit code of its process.
int be_rank(int rank, const std::string& file) {
  const PluginExports& cuda = *backend_plugin(Backend::kCuda).exports;
  if (cuda.device.count() < 2) share_one_gpu(rank);
  const NcclTable& nccl = *nccl_table(Backend::kCuda);
  const NcclPlace place{.id = agree(file, rank),
                        .ranks = 2,
                        .rank = rank,
                        .device = rank % cuda.device.count(),
                        .watchdog_timeout = std::chrono::seconds(10)};
  cuda.device.select(place.device);
  void* comm = nccl.join(place);
  void* from = cuda.device.allocate(Bytes(8 * kCount), nullptr);
  void* to = cuda.device.allocate(Bytes(8 * kCount), nullptr);
  const float mine = rank == 0 ? 1.0F : 2.0F;
  const Vector values{from, 2 * kCount, Dtype::kFp32};
  cuda.kernels.fill({}, {.y = values, .value = mine});
  cuda.device.wait_for_stream(nullptr);  // and after each collective: two ranks may share the GPU
  int wrong = 0;
  const auto expect = [&](const char* what, std::int64_t count, float value) {
    nccl.wait(comm, nullptr);
    if (all_equal(cuda.device, to, count, value)) return;
    fmt::print(stderr, "rank {}: wrong result of {}\n", rank, what);
    ++wrong;
  };
  nccl.all_reduce(comm, from, to, kCount, Dtype::kFp32, Reduction::kSum, nullptr);
  expect("all-reduce sum", kCount, 3);
  nccl.all_reduce(comm, from, to, kCount, Dtype::kFp32, Reduction::kMaximum, nullptr);
  expect("all-reduce max", kCount, 2);
  nccl.reduce_scatter(comm, from, to, kCount, Dtype::kFp32, nullptr);
  expect("reduce-scatter", kCount, 3);
  nccl.exchange(comm, 1 - rank, from, Bytes(4 * kCount), to, Bytes(4 * kCount), nullptr);
  expect("exchange", kCount, 3 - mine);
  nccl.all_gather(comm, from, to, kCount, Dtype::kFp32, nullptr);
  expect("all-gather", kCount, 1);  // its first half is rank 0's
  if (rank == 0 && wrong == 0) {
    fmt::print("all collectives give the expected results\n");
    std::fflush(stdout);
  }
  if (rank == 1) ::_exit(wrong == 0 ? 0 : 1);  // without closing the communicator
  try {
    nccl.all_reduce(comm, from, to, kCount, Dtype::kFp32, Reduction::kSum, nullptr);
    nccl.wait(comm, nullptr);
    fmt::print(stderr, "rank 0: did not detect that rank 1 has exited\n");
    ++wrong;
  } catch (const RuntimeFailure& failure) {
    fmt::print("detected: {}\n", failure.diagnostic().what);
    std::fflush(stdout);
  }
  ::_exit(wrong == 0 ? 0 : 1);  // the communicator is broken: no clean shutdown is possible
}

/// Starts this program again as a rank, since CUDA does not work after a plain fork.
pid_t start(const char* program, int rank, const std::string& file) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  const std::string number = std::to_string(rank);
  ::execl(program, program, number.c_str(), file.c_str(), nullptr);
  ::_exit(127);
}

int smoke() {
  const std::string file = fmt::format("/tmp/meshwright-nccl-{}", ::getpid());
  const pid_t children[2] = {start("/proc/self/exe", 0, file), start("/proc/self/exe", 1, file)};
  int code = 0;
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    const int its = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    if (its != 0) code = its;
  }
  std::filesystem::remove(file);
  fmt::print("{}\n", code == 0 ? "passed" : code == 4 ? "skipped" : "failed");
  return code;
}

/// In the child process: the parent must not use CUDA before it forks.
int main_of_rank(int rank, const std::string& file) {
  if (!backend_plugin(Backend::kCuda).missing.empty() || nccl_table(Backend::kCuda) == nullptr ||
      !nccl_table(Backend::kCuda)->missing().empty()) {
    if (rank == 0)
      fmt::print(stderr, "skipped: {}\n",
                 !backend_plugin(Backend::kCuda).missing.empty()
                     ? backend_plugin(Backend::kCuda).missing
                 : nccl_table(Backend::kCuda) == nullptr ? "the plug-in was built without NCCL"
                                                         : nccl_table(Backend::kCuda)->missing());
    return 4;
  }
  try {
    return be_rank(rank, file);
  } catch (const RuntimeFailure& failure) {
    fmt::print(stderr, "{}", format(failure.diagnostic()));
    return 1;
  }
}

}  // namespace
}  // namespace meshwright

int main(int count, char** arguments) {
  if (count == 3) return meshwright::main_of_rank(std::atoi(arguments[1]), arguments[2]);
  return meshwright::smoke();
}
