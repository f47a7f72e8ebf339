/// What the launch of each training program says about a plan: parallelism, memory, precision and
/// batch. Shared by launch_text() and export_launch(), which adds the model and the frame.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/plan/plan.hpp"
#include "models/launch/launch_text.hpp"

namespace meshwright {

/// "--name value"; a switch has no value, a list has its elements separated by spaces.
struct LaunchFlag {
  std::string name;   ///< without dashes
  std::string value;  ///< not quoted
  friend bool operator==(const LaunchFlag&, const LaunchFlag&) = default;
};
/// As a shell reads it: values with special characters are quoted.
std::string to_text(const LaunchFlag& flag);

struct MegatronSettings {
  std::vector<LaunchFlag> parallelism, memory, batch;
  bool uses_fsdp = false;  ///< Megatron-FSDP: CUDA_DEVICE_MAX_CONNECTIONS must not be 1
  std::vector<std::string> unsupported;
};
MegatronSettings megatron_settings(const Plan& plan);

/// Lines of tables of the job file.
struct TorchtitanSettings {
  std::string parallelism, training, activation_checkpoint;
  std::string quantization;  ///< `converters` of [model] and the tables that follow; empty: none
  std::vector<std::string> unsupported;
};
TorchtitanSettings torchtitan_settings(const Plan& plan);

/// The configuration file.
LaunchText deepspeed_settings(const Plan& plan);

// ---- shared by the programs ---------------------------------------------------------------------

/// Gradient buckets that a trainer can be told to use.
struct KnownBuckets {
  BucketRule own = BucketRule::kNone;
  bool sized = false;
};
/// Settings that none of the trainers supports, and buckets that this one does not.
std::vector<std::string> unsupported_settings(const Plan& plan, KnownBuckets known);
/// Trainers count the elements of a bucket in the dtype used for gradient reduction.
std::int64_t bucket_elements(const Strategy& s);
bool is_even(const Plan& plan);
int layer_count(const Plan& plan);

}  // namespace meshwright
