#include "executor/launch/job_environment.hpp"

#include <fmt/format.h>

#include <array>
#include <string_view>

#include "core/base/error.hpp"
#include "core/base/number_from_text.hpp"

namespace meshwright {
namespace {

constexpr int kMostRanks = 1 << 20;
/// Used if the launcher sets no port; below the ephemeral ports (32768).
constexpr int kFirstPort = 20'000, kPorts = 10'000;

[[noreturn]] void refuse_variable(const std::string& where, const std::string& what,
                                  const std::string& hint) {
  throw InputError(Diagnostic{where, what, hint});
}

std::optional<int> number_of(const Variables& variables, const char* name, int most) {
  const char* text = variables(name);
  if (text == nullptr) return std::nullopt;
  const std::string_view digits(text);
  const auto number = number_from_text<int>(digits);
  if (!number || *number < 0 || *number > most)
    refuse_variable(name,
                    fmt::format("invalid value '{}': expected a whole number from 0 to {}",
                                digits.substr(0, 40), most),
                    "check the launcher, which sets this variable");
  return number;
}

/// The environment variables of one launcher.
struct Names {
  const char *rank, *ranks, *local_rank, *local_ranks, *started_by;
};
constexpr std::array kLaunchers{
    Names{"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "RANK"},
    Names{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
          "OMPI_COMM_WORLD_LOCAL_SIZE", "mpirun"},
    Names{"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", "mpirun"},
    Names{"SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "", "srun"},
};

/// Equal on all processes of a job, and most likely different for two jobs on one host.
std::uint16_t port_of_job(const Variables& variables) {
  std::uint32_t hash = 2166136261U;  // FNV-1a
  for (const char* name : {"SLURM_JOB_ID", "SLURM_STEP_ID", "PMIX_NAMESPACE", "PMI_JOBID"})
    if (const char* text = variables(name))
      for (const char c : std::string_view(text))
        hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return static_cast<std::uint16_t>(kFirstPort + static_cast<int>(hash % kPorts));
}

void find_meeting(JobPlace& place, const Names& names, const Variables& variables) {
  const bool by_torchrun = variables("TORCHELASTIC_RUN_ID") != nullptr;
  if (by_torchrun) place.started_by = "torchrun";
  const std::optional<int> port = number_of(variables, "MASTER_PORT", 65'534);
  if (port == 0)
    refuse_variable("MASTER_PORT", "must be at least 1, got 0",
                    "set a free port, the same in all processes");
  if (port)
    place.port = static_cast<std::uint16_t>(*port + (by_torchrun ? 1 : 0));
  else
    place.port = port_of_job(variables);
  if (const char* host = variables("MASTER_ADDR"); host != nullptr && *host != '\0') {
    place.host = host;
    return;
  }
  for (const char* list : {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"})
    if (const char* nodes = variables(list); nodes != nullptr && place.host.empty())
      place.host = first_node_of(nodes);
  if (!place.host.empty()) return;
  const std::optional<int> here = number_of(variables, names.local_ranks, kMostRanks);
  if (place.ranks > 1 && here && *here != place.ranks)
    refuse_variable(
        "MASTER_ADDR",
        fmt::format("must be set: only {} of {} processes run on this host", *here, place.ranks),
        "set it to the address of rank 0's host in all processes");
  place.host = "127.0.0.1";
}

}  // namespace

std::string first_node_of(const std::string& list) {
  const std::size_t end = list.find_first_of("[,");
  std::string first = list.substr(0, end);
  if (end == std::string::npos || list[end] == ',') return first;
  const std::size_t number_end = list.find_first_of("-,]", end);
  if (number_end != std::string::npos) first += list.substr(end + 1, number_end - end - 1);
  const std::size_t behind = list.find(']', end);  // "rack[1-2]-a[3]": the rest of the name
  if (behind == std::string::npos || behind + 1 >= list.size() || list[behind + 1] == ',')
    return first;
  return first + first_node_of(list.substr(behind + 1));
}

std::optional<JobPlace> job_place_from(const Variables& variables) {
  for (const Names& names : kLaunchers) {
    const std::optional<int> rank = number_of(variables, names.rank, kMostRanks - 1);
    if (!rank) continue;
    const std::optional<int> ranks = number_of(variables, names.ranks, kMostRanks);
    if (!ranks)
      refuse_variable(names.ranks, fmt::format("must be set together with {}", names.rank),
                      "set both, or neither");
    if (*rank >= *ranks)
      refuse_variable(names.rank,
                      fmt::format("must be less than {} ({}), got {}", names.ranks, *ranks, *rank),
                      fmt::format("number the ranks from 0 to {} - 1", names.ranks));
    JobPlace place{.rank = *rank, .ranks = *ranks, .host = {}, .started_by = names.started_by};
    place.local_rank = number_of(variables, names.local_rank, kMostRanks).value_or(*rank);
    if (const char* secret = variables("MESHWRIGHT_JOB_SECRET")) place.secret = secret;
    find_meeting(place, names, variables);
    return place;
  }
  return std::nullopt;
}

}  // namespace meshwright
