#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/reference/element_access.hpp"
#include "kernels/reference/kernels.hpp"

namespace meshwright::reference {
namespace {

double largest(const LogitShard& shard, std::int64_t n) {
  double maximum = -std::numeric_limits<double>::infinity();
  for (std::int64_t v = 0; v < shard.tokens; ++v)
    maximum = std::max(maximum, at(shard.logits, n, v));
  return maximum;
}

double sum_of_exponentials(const LogitShard& shard, std::int64_t n, double maximum) {
  double sum = 0;
  for (std::int64_t v = 0; v < shard.tokens; ++v) sum += std::exp(at(shard.logits, n, v) - maximum);
  return sum;
}

bool has(const LogitShard& shard, std::int64_t token) {
  return token >= shard.first_token && token < shard.first_token + shard.tokens;
}

float loss_of(std::int32_t target, double maximum, double sum, double target_logit) {
  if (target < 0) return 0;
  return static_cast<float>(std::log(sum) + maximum - target_logit);
}

}  // namespace

void run(const Launch&, const CrossEntropyMaximum& a) {
  for (std::int64_t n = 0; n < a.shard.logits.rows; ++n)
    get(a.maximum, n) = static_cast<float>(largest(a.shard, n));
}

void run(const Launch&, const CrossEntropySum& a) {
  for (std::int64_t n = 0; n < a.shard.logits.rows; ++n) {
    const std::int32_t target = get(a.targets, n);
    get(a.sum, n) = static_cast<float>(sum_of_exponentials(a.shard, n, double{get(a.maximum, n)}));
    get(a.target_logit, n) =
        has(a.shard, target)
            ? static_cast<float>(at(a.shard.logits, n, target - a.shard.first_token))
            : 0.0F;
  }
}

void run(const Launch&, const CrossEntropyLoss& a) {
  for (std::int64_t n = 0; n < std::ssize(a.loss); ++n)
    get(a.loss, n) = loss_of(get(a.targets, n), double{get(a.maximum, n)}, double{get(a.sum, n)},
                             double{get(a.target_logit, n)});
}

void run(const Launch&, const CrossEntropyForward& a) {
  for (std::int64_t n = 0; n < a.shard.logits.rows; ++n) {
    const std::int32_t target = get(a.targets, n);
    const double maximum = largest(a.shard, n);
    const double sum = sum_of_exponentials(a.shard, n, maximum);
    get(a.maximum, n) = static_cast<float>(maximum);
    get(a.sum, n) = static_cast<float>(sum);
    const double logit =
        has(a.shard, target) ? at(a.shard.logits, n, target - a.shard.first_token) : 0;
    get(a.loss, n) = loss_of(target, maximum, sum, logit);
  }
}

void run(const Launch&, const CrossEntropyGradient& a) {
  for (std::int64_t n = 0; n < a.dlogits.rows; ++n) {
    const std::int32_t target = get(a.targets, n);
    for (std::int64_t v = 0; v < a.dlogits.columns; ++v) {
      double gradient = 0;
      if (target >= 0 && v < a.shard.tokens) {
        const double probability =
            std::exp(at(a.shard.logits, n, v) - double{get(a.maximum, n)}) / double{get(a.sum, n)};
        const bool is_target = v + a.shard.first_token == target;
        gradient = double{a.scale} * (probability - (is_target ? 1 : 0));
      }
      put(a.dlogits, n, v, gradient);
    }
  }
}

}  // namespace meshwright::reference
