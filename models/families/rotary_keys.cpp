// Rotary position embeddings in configurations of transformers 4 (rope_theta, rope_scaling) and 5
// (rope_parameters); formulas of modeling_rope_utils.py.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "models/families/dialects.hpp"

namespace meshwright {
namespace {

/// What a method of context extension reads and changes.
struct RotaryKeys {
  ConfigReader& keys;  ///< of rope_scaling or rope_parameters
  RotaryAngles& angles;
  std::int64_t rotated;  ///< R
  double positions;      ///< longest sequence
  double original;       ///< longest sequence of the first training

  double factor() { return keys.has("factor") ? keys.positive("factor", 1) : positions / original; }
  double frequency(std::int64_t pair) const {
    return std::pow(angles.base, -2 * static_cast<double>(pair) / static_cast<double>(rotated));
  }
  template <class Divisor>
  void divide(const Divisor& divisor) {
    for (std::int64_t i = 0; i < rotated / 2; ++i) angles.divisors.push_back(divisor(i));
  }
};

void read_linear(RotaryKeys& rope) {
  const double factor = rope.keys.positive("factor", 1);
  rope.divide([&](std::int64_t) { return factor; });
}

/// Rescales only sequences longer than max_position_embeddings, which no plan has.
void read_dynamic(RotaryKeys& rope) { rope.keys.positive("factor", 1); }

/// Llama 3.1: long wavelengths are divided by the factor, short ones kept; with equal limits (Llama
/// 4 Scout) there is nothing in between.
void read_llama3(RotaryKeys& rope) {
  const double factor = rope.keys.positive("factor", 1);
  const double low = rope.keys.positive("low_freq_factor", 1);
  const double high = rope.keys.positive("high_freq_factor", 4);
  if (high < low)
    return rope.keys.complain(
        "high_freq_factor",
        fmt::format("must not be less than low_freq_factor {}, got {}", low, high), "");
  rope.divide([&](std::int64_t pair) {
    const double turns = rope.original * rope.frequency(pair) / (2 * std::numbers::pi);
    const double kept = high > low    ? std::clamp((turns - low) / (high - low), 0.0, 1.0)
                        : turns < low ? 0.0
                                      : 1.0;
    return 1 / ((1 - kept) / factor + kept);
  });
}

/// mscale of YaRN (arXiv 2309.00071, section 3.4).
double yarn_magnitude(double factor, double mscale) {
  return factor <= 1 ? 1 : 0.1 * mscale * std::log(factor) + 1;
}

void read_yarn(RotaryKeys& rope) {
  const double factor = rope.factor();
  const double fast = rope.keys.positive("beta_fast", 32),
               slow = rope.keys.positive("beta_slow", 1);
  const double mscale = rope.keys.not_negative("mscale", 0);
  const double mscale_all = rope.keys.not_negative("mscale_all_dim", 0);
  const double natural = mscale > 0 && mscale_all > 0
                             ? yarn_magnitude(factor, mscale) / yarn_magnitude(factor, mscale_all)
                             : yarn_magnitude(factor, 1);
  rope.angles.magnitude = rope.keys.positive("attention_factor", natural);
  const bool truncates = rope.keys.flag("truncate", true);
  const auto size = static_cast<double>(rope.rotated);
  const auto pair_of = [&](double turns) {
    return size * std::log(rope.original / (turns * 2 * std::numbers::pi)) /
           (2 * std::log(rope.angles.base));
  };
  double first = pair_of(fast), last = pair_of(slow);
  if (truncates) first = std::floor(first), last = std::ceil(last);
  first = std::max(first, 0.0);
  last = std::min(last, size - 1);
  constexpr double kSmallestRamp = 0.001;
  if (first == last) last += kSmallestRamp;
  rope.divide([&](std::int64_t pair) {
    const double ramp = std::clamp((static_cast<double>(pair) - first) / (last - first), 0.0, 1.0);
    return 1 / (ramp / factor + (1 - ramp));
  });
}

void read_longrope(RotaryKeys& rope) {
  rope.angles.divisors = rope.keys.positive_numbers("short_factor");
  rope.angles.long_divisors = rope.keys.positive_numbers("long_factor");
  rope.angles.long_from = static_cast<std::int64_t>(rope.original);
  for (const char* key : {"short_factor", "long_factor"})
    if (const auto given = std::ssize(rope.keys.positive_numbers(key)); given != rope.rotated / 2)
      rope.keys.complain(key, fmt::format("expected {} numbers, got {}", rope.rotated / 2, given),
                         "give one number per rotated pair of a head");
  const double factor = rope.factor();
  const double natural =
      factor <= 1 ? 1 : std::sqrt(1 + std::log(factor) / std::log(rope.original));
  rope.angles.magnitude = rope.keys.positive("attention_factor", natural);
}

struct RotaryMethod {
  std::string_view name;
  void (*read)(RotaryKeys&);
};
constexpr RotaryMethod kMethods[] = {{"default", [](RotaryKeys&) {}},
                                     {"linear", read_linear},
                                     {"dynamic", read_dynamic},
                                     {"llama3", read_llama3},
                                     {"yarn", read_yarn},
                                     {"longrope", read_longrope},
                                     {"su", read_longrope}};  // its name in early Phi-3 files

/// `keys`: of rope_scaling or rope_parameters.
void read_method(ConfigReader& outer, ConfigReader& keys, const RotarySizes& sizes,
                 RotaryAngles& angles) {
  std::vector<std::string> names;
  for (const RotaryMethod& method : kMethods) names.emplace_back(method.name);
  const std::string name = keys.choice(keys.name_in_use({"rope_type", "type"}), "default", names);
  angles.base = keys.positive("rope_theta", angles.base);
  keys.refuse({"mrope_section"});
  keys.ignore({"partial_rotary_factor"});  // read before
  // Phi-3 has the original length beside the other sizes.
  const auto positions = static_cast<double>(sizes.positions);
  const double original = outer.has("original_max_position_embeddings")
                              ? outer.positive("original_max_position_embeddings", positions)
                              : keys.positive("original_max_position_embeddings", positions);
  RotaryKeys rope{keys, angles, sizes.rotated, positions, original};
  std::ranges::find(kMethods, name, &RotaryMethod::name)->read(rope);
}

constexpr std::string_view kScaling = "rope_scaling", kParameters = "rope_parameters";

/// The rotated part of every head: a key of rope_parameters in transformers 5, of the whole
/// configuration in 4.
double rotated_share(ConfigReader& reader, std::string_view key, double absent) {
  for (const std::string_view name : {kParameters, kScaling}) {
    std::optional<ConfigReader> inner = reader.object(name);
    if (!inner || !inner->has("partial_rotary_factor")) continue;
    const double share = inner->share("partial_rotary_factor", absent);
    if (!inner->is_clean()) reader.adopt(*inner);
    return share;
  }
  return reader.share(key, absent);
}

}  // namespace

std::int64_t read_rotated_size(ConfigReader& reader, std::string_view key, std::int64_t head_size,
                               double absent) {
  const double share = rotated_share(reader, key, absent);
  if (!reader.is_clean()) return head_size;
  const auto rotated = static_cast<std::int64_t>(static_cast<double>(head_size) * share);
  if (rotated > 0 && rotated % 2 == 0) return rotated;
  reader.complain(
      key, fmt::format("{} of the {} elements of a head would be rotated", rotated, head_size),
      "choose a factor that gives a positive even number: rotary position embedding "
      "rotates pairs of elements");
  return head_size;
}

RotaryAngles read_rotary_angles(ConfigReader& reader, const RotarySizes& sizes, double base,
                                std::string_view base_key) {
  RotaryAngles angles;
  angles.base = reader.positive(base_key, base);
  if (!reader.is_clean()) return angles;
  for (const std::string_view key : {kParameters, kScaling}) {
    std::optional<ConfigReader> keys = reader.object(key);
    if (!keys) continue;
    if (!sizes.layer_type.empty() && keys->has(sizes.layer_type)) {  // one per type of layer
      std::optional<ConfigReader> own = keys->object(sizes.layer_type);
      if (!own) continue;
      read_method(reader, *own, sizes, angles);
      reader.adopt(*own);
      return angles;
    }
    read_method(reader, *keys, sizes, angles);
    reader.adopt(*keys);
    return angles;
  }
  return angles;
}

RotaryAngles read_local_angles(ConfigReader& reader, const RotarySizes& sizes, double base) {
  RotaryAngles angles;
  angles.base = base;
  std::optional<ConfigReader> parameters = reader.object(kParameters);
  if (!parameters) return angles;
  std::optional<ConfigReader> own = parameters->object("sliding_attention");
  if (!own) return angles;
  read_method(reader, *own, sizes, angles);
  reader.adopt(*own);
  return angles;
}

double yarn_score_factor(ConfigReader& reader) {
  for (const std::string_view key : {kParameters, kScaling}) {
    std::optional<ConfigReader> keys = reader.object(key);
    if (!keys) continue;
    const std::string_view type = keys->name_in_use({"rope_type", "type"});
    const double mscale = keys->not_negative("mscale_all_dim", 0);
    if (!keys->has(type) || mscale == 0) return 1;
    if (keys->choice(type, "", {"yarn"}) != "yarn") return 1;
    const double magnitude = yarn_magnitude(keys->positive("factor", 1), mscale);
    return magnitude * magnitude;
  }
  return 1;
}

}  // namespace meshwright
