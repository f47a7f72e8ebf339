#include "tests/validation/random_jobs.hpp"

#include <algorithm>

#include "core/base/random.hpp"
#include "models/load/load.hpp"

namespace meshwright {
namespace {

constexpr int kSmallest = 8;  ///< devices
constexpr std::uint64_t kJobsPerMixture = 3, kJobsPerOddSize = 4;
constexpr double kBytesPerParameter = 20;  ///< mixed precision with Adam, and some room

}  // namespace

RandomJobs::RandomJobs(std::uint64_t seed, int largest)
    : state_(mixed_bits(seed)), largest_(largest) {
  for (const std::string& name : model_preset_names())
    models_.push_back({name, model_from_config(find_model(name))});
  for (const std::string& name : cluster_preset_names()) {
    Cluster cluster = cluster_from_toml(find_cluster(name));
    if (device_count(cluster) >= kSmallest && is_homogeneous(cluster))
      clusters_.push_back({name, std::move(cluster)});
  }
}

AuditedJob RandomJobs::next() {
  while (true) {
    const auto& [model_name, model] = pick(models_);
    const auto& [cluster_name, cluster] = pick(clusters_);
    const bool is_mixture = draw(kJobsPerMixture) == 0;
    const int gpus = draw_size(cluster);
    const DeviceModel& device = device_of(cluster, DeviceId(0));
    const auto memory = static_cast<double>((device.memory - device.reserved_memory).value);
    if (traits_of(model).experts.has_value() != is_mixture || gpus < kSmallest ||
        gpus > std::min(largest_, device_count(cluster)) ||
        gpus * memory < kBytesPerParameter * static_cast<double>(parameter_count(model)))
      continue;
    return {
        model_name,
        cluster_name,
        {.gpus = gpus, .global_batch = draw_batch(gpus), .sequence_length = draw_length(model)}};
  }
}

std::uint64_t RandomJobs::draw(std::uint64_t below) { return mixed_bits(state_++) % below; }

/// A power of two, or an odd multiple of a node times a power of two.
int RandomJobs::draw_size(const Cluster& cluster) {
  constexpr std::uint64_t kSizes = 12, kOddSizes = 7;  // 8 to 16,384; 3 to 15 nodes
  if (draw(kJobsPerOddSize) > 0) return kSmallest << draw(kSizes);
  const int odd = 3 + 2 * static_cast<int>(draw(kOddSizes));
  return node_of(cluster, DeviceId(0)).device_count * odd << draw(kSizes / 2);
}

/// A power of two, or a multiple of the number of devices.
std::int64_t RandomJobs::draw_batch(int gpus) {
  constexpr std::uint64_t kSizes = 9, kMultiples = 4;  // 16 to 4,096; a half to four per device
  if (draw(2) == 0) return std::int64_t{16} << draw(kSizes);
  return (std::int64_t{gpus} << draw(kMultiples)) / 2;
}

/// Short ones are more frequent.
std::int64_t RandomJobs::draw_length(const ModelGraph& model) {
  constexpr std::uint64_t kLengths = 8;
  constexpr std::int64_t kShortest = 1024;
  const std::int64_t length = kShortest << std::min(draw(kLengths), draw(kLengths));
  return model.longest_sequence > 0 ? std::min(length, model.longest_sequence) : length;
}

}  // namespace meshwright
