#include "kernels/cpu/kernels.hpp"

namespace meshwright::cpu::MESHWRIGHT_CPU_LEVEL {
namespace {

void score_row(RouterScore score, std::int64_t experts, const float* logits, float* scores) {
  if (score == RouterScore::kSigmoid) {
    for (std::int64_t e = 0; e < experts; ++e) scores[e] = sigmoid_of(logits[e]);
    return;
  }
  const float maximum = maximum_of(experts, [&](std::int64_t e) { return logits[e]; });
  for (std::int64_t e = 0; e < experts; ++e) scores[e] = exponential(logits[e] - maximum);
  Lanes lanes;
  lanes.add(experts, [&](std::int64_t e) { return scores[e]; });
  const float sum = lanes.total();
  for (std::int64_t e = 0; e < experts; ++e) scores[e] /= sum;
}

/// Keys by which experts are chosen.
struct Keys {
  const float *scores, *correction;  ///< correction: null for none
  MESHWRIGHT_INLINE float operator()(std::int64_t e) const {
    return correction == nullptr ? scores[e] : scores[e] + correction[e];
  }
};

/// Index of the key that follows (`last`, `last_index`) in the order of descending keys and
/// ascending indices; -1: none left. NaN is never chosen.
template <class Key>
MESHWRIGHT_INLINE std::int64_t next_best(std::int64_t count, const Key& key, bool is_first,
                                         float last, std::int64_t last_index) {
  std::int64_t best = -1;
  float best_key = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const float k = key(i);
    const bool is_left = is_first ? k == k : (k < last || (k == last && i > last_index));
    if (is_left && (best < 0 || k > best_key)) best = i, best_key = k;
  }
  return best;
}

/// Sum of the largest keys of a group of experts, best first.
MESHWRIGHT_INLINE float sum_of_best(const GateShape& s, const Keys& keys, std::int64_t group) {
  const std::int64_t size = s.experts / s.groups;
  const std::int64_t wanted = s.summed_keys();
  const auto key = [&](std::int64_t i) { return keys(group * size + i); };
  float sum = 0, last = 0;
  std::int64_t at = -1;
  for (std::int64_t i = 0; i < wanted; ++i) {
    at = next_best(size, key, i == 0, last, at);
    if (at < 0) break;
    last = key(at);
    sum += last;
  }
  return sum;
}

/// The K largest keys of the chosen groups in K scans; expert 0 if none is left.
void choose(const GateShape& s, const Keys& keys, std::int32_t* chosen) {
  bool is_open[kMaxExpertGroups] = {};
  const std::int64_t size = s.experts / s.groups;
  const bool limited = s.chosen_groups < s.groups;
  if (limited) {
    float sums[kMaxExpertGroups];
    for (std::int64_t g = 0; g < s.groups; ++g) sums[g] = sum_of_best(s, keys, g);
    std::int64_t at = -1;
    for (std::int64_t i = 0; i < s.chosen_groups; ++i) {
      at = next_best(
          s.groups, [&](std::int64_t g) { return sums[g]; }, i == 0, at < 0 ? 0 : sums[at], at);
      if (at < 0) break;
      is_open[at] = true;
    }
  }
  const auto key = [&](std::int64_t e) {
    return limited && !is_open[e / size] ? -__builtin_inff() : keys(e);
  };
  float last = 0;
  std::int64_t at = -1;
  for (std::int64_t k = 0; k < s.experts_per_token; ++k) {
    at = next_best(s.experts, key, k == 0, last, at);
    chosen[k] = static_cast<std::int32_t>(at < 0 ? 0 : at);
    if (at >= 0) last = key(at);
  }
}

}  // namespace

void run(const Launch&, const GateForward& a) {
  const GateShape& s = a.shape;
  for (std::int64_t n = 0; n < s.tokens; ++n) {
    float* scores = a.scores.data() + n * s.experts;
    std::int32_t* chosen = a.experts.data() + n * s.experts_per_token;
    float* weights = a.weights.data() + n * s.experts_per_token;
    score_row(s.score, s.experts, a.logits.data() + n * s.experts, scores);
    choose(s, {scores, a.correction.empty() ? nullptr : a.correction.data()}, chosen);
    float sum = 0;
    for (std::int64_t k = 0; k < s.experts_per_token; ++k) sum += scores[chosen[k]];
    const float factor = s.normalized ? s.scale / sum : s.scale;
    for (std::int64_t k = 0; k < s.experts_per_token; ++k) weights[k] = factor * scores[chosen[k]];
  }
}

namespace {
float sum_of(const float* scores, std::int64_t experts) {
  Lanes lanes;
  lanes.add(experts, [&](std::int64_t e) { return scores[e]; });
  return lanes.total();
}
}  // namespace

void run(const Launch&, const GateLoad& a) {
  const GateShape& s = a.shape;
  float* shares = a.shares.data();
  float* choices = a.choices.data();
  for (std::int64_t e = 0; e < s.experts; ++e) shares[e] = choices[e] = 0;
  for (std::int64_t i = 0; i < s.tokens * s.experts_per_token; ++i)
    choices[a.experts.data()[i]] += 1;
  for (std::int64_t n = 0; n < s.tokens; ++n) {
    const float* scores = a.scores.data() + n * s.experts;
    const float sum = s.score == RouterScore::kSigmoid ? sum_of(scores, s.experts) : 1.0F;
    for (std::int64_t e = 0; e < s.experts; ++e) shares[e] += scores[e] / sum;
  }
}

namespace {

/// Adds to dscores (header: weight): w_k = scale p_k / S gives dp_j = scale (dw_j - dw.p / S) / S.
void add_weight_gradient(const GateBackward& a, std::int64_t n, float* dscores) {
  const GateShape& s = a.shape;
  const float* scores = a.scores.data() + n * s.experts;
  const std::int32_t* chosen = a.experts.data() + n * s.experts_per_token;
  const float* dweights = a.dweights.data() + n * s.experts_per_token;
  float sum = 0, product = 0;
  for (std::int64_t k = 0; k < s.experts_per_token; ++k) {
    sum += scores[chosen[k]];
    product += dweights[k] * scores[chosen[k]];
  }
  for (std::int64_t k = 0; k < s.experts_per_token; ++k)
    dscores[chosen[k]] +=
        s.scale * (s.normalized ? (dweights[k] - product / sum) / sum : dweights[k]);
}

void add_balance_gradient(const GateBackward& a, std::int64_t n, float* dscores) {
  const GateShape& s = a.shape;
  if (a.choices.empty()) return;
  const float* scores = a.scores.data() + n * s.experts;
  const float* choices = a.choices.data();
  float sum = 1, product = 0;
  if (s.score == RouterScore::kSigmoid) {
    sum = sum_of(scores, s.experts);
    Lanes lanes;
    lanes.add(s.experts, [&](std::int64_t e) { return choices[e] * scores[e]; });
    product = lanes.total() / sum;
  }
  for (std::int64_t e = 0; e < s.experts; ++e)
    dscores[e] += a.share_scale * (choices[e] - product) / sum;
}

}  // namespace

void run(const Launch&, const GateBackward& a) {
  const GateShape& s = a.shape;
  for (std::int64_t n = 0; n < s.tokens; ++n) {
    float* d = a.dlogits.data() + n * s.experts;  // first the gradient of the scores
    const float* p = a.scores.data() + n * s.experts;
    for (std::int64_t e = 0; e < s.experts; ++e) d[e] = 0;
    add_weight_gradient(a, n, d);
    add_balance_gradient(a, n, d);
    if (s.score == RouterScore::kSigmoid) {
      for (std::int64_t e = 0; e < s.experts; ++e) d[e] *= p[e] * (1 - p[e]);
      continue;
    }
    Lanes product;
    product.add(s.experts, [&](std::int64_t e) { return d[e] * p[e]; });
    const float mean = product.total();
    for (std::int64_t e = 0; e < s.experts; ++e) d[e] = p[e] * (d[e] - mean);
  }
}

}  // namespace meshwright::cpu::MESHWRIGHT_CPU_LEVEL
