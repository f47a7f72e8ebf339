#include "tests/training/training_modes.hpp"

#include <fmt/format.h>

#include <utility>

namespace meshwright {
namespace {

constexpr bool kMixture = true;

using Modes = std::vector<TrainingMode>;

void add_data_parallel(Modes& modes) {
  for (const int n : {2, 4}) {
    const std::string dp = fmt::format("--dp {}", n);
    modes.push_back({fmt::format("dp {}, all-reduce", n), n, dp});
    modes.push_back({fmt::format("dp {}, buckets", n), n, dp + " --bucket pytorch"});
    modes.push_back({fmt::format("dp {}, explicit ring", n), n, dp + " --data-parallel ring"});
    for (const int zero : {1, 2, 3})
      modes.push_back(
          {fmt::format("dp {}, zero {}", n, zero), n, dp + fmt::format(" --zero {}", zero)});
    const std::string servers = " --servers 1 --colocated-servers --data-parallel ";
    modes.push_back(
        {fmt::format("dp {}, parameter server", n), n, dp + servers + "parameter-server"});
    modes.push_back({fmt::format("dp {}, asynchronous server", n), n,
                     dp + servers + "async-parameter-server", !kMixture, true});
  }
}

void add_model_parallel(Modes& modes) {
  for (const int n : {2, 4}) {
    modes.push_back({fmt::format("tp {}", n), n, fmt::format("--tp {} --no-sequence-parallel", n)});
    modes.push_back(
        {fmt::format("tp {}, sequence", n), n, fmt::format("--tp {} --sequence-parallel", n)});
  }
  for (const int n : {2, 4})
    for (const char* algorithm : {"all-gather", "ring", "all-to-all"})
      modes.push_back({fmt::format("cp {}, {}", n, algorithm), n,
                       fmt::format("--cp {} --context-algorithm {}", n, algorithm)});
}

void add_pipelines(Modes& modes) {
  const auto add = [&](int stages, const char* schedule, int chunks) {
    const std::string more = chunks > 1 ? fmt::format(" --vpp {}", chunks) : "";
    modes.push_back({fmt::format("pp {}, {}", stages, schedule), stages,
                     fmt::format("--pp {} --schedule {}{}", stages, schedule, more)});
  };
  add(2, "gpipe", 1);
  add(2, "1f1b", 1);
  add(2, "interleaved-1f1b", 2);
  add(2, "zb-h1", 1);
  add(2, "zb-v", 2);
  add(2, "dualpipev", 2);
  add(4, "gpipe", 1);
  add(4, "1f1b", 1);
  add(4, "interleaved-1f1b", 3);
  add(4, "zb-h1", 1);
  add(4, "zb-2p", 1);
  add(4, "zb-v", 2);
  add(4, "hanayo", 2);
  add(4, "dualpipev", 2);
  add(4, "dualpipe", 1);
  add(4, "chimera", 1);
}

void add_combinations(Modes& modes) {
  for (const char* flags :
       {"--dp 2 --tp 2", "--dp 2 --zero 1 --tp 2 --sequence-parallel", "--dp 2 --zero 3 --tp 2",
        "--dp 2 --pp 2", "--dp 2 --zero 1 --pp 2 --schedule zb-h1", "--tp 2 --pp 2",
        "--tp 2 --sequence-parallel --pp 2 --schedule zb-h1", "--dp 2 --cp 2", "--tp 2 --cp 2",
        "--cp 2 --pp 2", "--dp 2 --pp 2 --recompute full"}) {
    std::string name;
    for (const char* c = flags; *c != '\0'; ++c)
      if (*c != '-' || (!name.empty() && name.back() != ' ')) name += *c;  // keeps zb-h1
    modes.push_back({name, 4, flags});
  }
}

void add_mixtures(Modes& modes) {
  const auto add = [&](const char* name, int ranks, const char* flags) {
    modes.push_back({name, ranks, flags, kMixture});
  };
  add("dp 2", 2, "--dp 2");
  add("dp 2, ep 2", 2, "--dp 2 --ep 2");
  add("dp 4, ep 2", 4, "--dp 4 --ep 2");
  add("dp 4, ep 4", 4, "--dp 4 --ep 4");
  add("dp 2, ep 2, zero 1", 2, "--dp 2 --ep 2 --zero 1");
  add("tp 2, ep 2", 2, "--tp 2 --ep 2");
  add("tp 2, dp 2, ep 4", 4, "--tp 2 --dp 2 --ep 4");
  add("tp 2, etp 2", 2, "--tp 2 --etp 2");
  add("pp 2, dp 2, ep 2", 4, "--pp 2 --dp 2 --ep 2");
}

}  // namespace

std::vector<TrainingMode> training_modes() {
  Modes modes{{"one rank", 1, ""}};
  add_data_parallel(modes);
  add_model_parallel(modes);
  add_pipelines(modes);
  add_combinations(modes);
  modes.push_back({"one rank", 1, "", kMixture});
  add_mixtures(modes);
  return modes;
}

}  // namespace meshwright
