#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "kernels/reference/activation_formulas.hpp"
#include "kernels/reference/element_access.hpp"
#include "kernels/reference/kernels.hpp"

namespace meshwright::reference {
namespace {

std::vector<double> scores_of(RouterScore score, std::span<const float> logits) {
  std::vector<double> scores(logits.begin(), logits.end());
  if (score == RouterScore::kSigmoid) {
    for (double& s : scores) s = sigmoid(s);
    return scores;
  }
  const double maximum = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (double& s : scores) sum += s = std::exp(s - maximum);
  for (double& s : scores) s /= sum;
  return scores;
}

template <class T>
std::span<T> row_of(std::span<T> values, std::int64_t row, std::int64_t width) {
  return values.subspan(static_cast<std::size_t>(row * width), static_cast<std::size_t>(width));
}

/// The K experts with the largest keys, best first; ties: the lower index. An expert's place is the
/// number of experts that beat it.
void choose(std::span<const double> keys, std::span<std::int32_t> chosen) {
  std::fill(chosen.begin(), chosen.end(), 0);
  for (std::int64_t e = 0; e < std::ssize(keys); ++e) {
    std::int64_t place = 0;
    for (std::int64_t other = 0; other < std::ssize(keys); ++other)
      if (get(keys, other) > get(keys, e) || (get(keys, other) == get(keys, e) && other < e))
        ++place;
    if (place < std::ssize(chosen)) get(chosen, place) = static_cast<std::int32_t>(e);
  }
}

/// Sets the keys of groups that are not chosen to -infinity.
void leave_out_groups(const GateShape& s, std::span<double> keys) {
  if (s.chosen_groups >= s.groups) return;
  const std::int64_t size = s.experts / s.groups;
  const std::int64_t best = s.summed_keys();
  std::vector<double> sums;
  for (std::int64_t g = 0; g < s.groups; ++g) {
    std::vector<double> run(keys.begin() + g * size, keys.begin() + (g + 1) * size);
    std::sort(run.begin(), run.end(), std::greater<>());
    float sum = 0;  // in fp32, best first: every back end compares the same sums
    for (std::int64_t i = 0; i < std::min(best, size); ++i) sum += static_cast<float>(get(run, i));
    sums.push_back(double{sum});
  }
  std::vector<std::int32_t> chosen(static_cast<std::size_t>(s.chosen_groups));
  choose(sums, chosen);
  for (std::int64_t g = 0; g < s.groups; ++g)
    if (std::find(chosen.begin(), chosen.end(), g) == chosen.end())
      std::fill_n(keys.begin() + g * size, size, -std::numeric_limits<double>::infinity());
}

double sum_of(std::span<const float> values) {
  double sum = 0;
  for (const float v : values) sum += double{v};
  return sum;
}

}  // namespace

void run(const Launch&, const GateForward& a) {
  const GateShape& s = a.shape;
  for (std::int64_t n = 0; n < s.tokens; ++n) {
    const std::vector<double> scores = scores_of(s.score, row_of(a.logits, n, s.experts));
    for (std::int64_t e = 0; e < s.experts; ++e)
      get(a.scores, n * s.experts + e) = static_cast<float>(get(scores, e));
    // Uses the stored scores, so that back ends with equal scores make equal choices.
    std::vector<double> keys(scores.size());
    for (std::int64_t e = 0; e < s.experts; ++e)
      get(keys, e) = double{get(a.scores, n * s.experts + e) +
                            (a.correction.empty() ? 0.0F : get(a.correction, e))};
    const std::span<std::int32_t> chosen = row_of(a.experts, n, s.experts_per_token);
    leave_out_groups(s, keys);
    choose(keys, chosen);
    double sum = 0;
    for (const std::int32_t e : chosen) sum += get(scores, e);
    for (std::int64_t k = 0; k < s.experts_per_token; ++k)
      get(a.weights, n * s.experts_per_token + k) = static_cast<float>(
          double{s.scale} * get(scores, get(chosen, k)) / (s.normalized ? sum : 1.0));
  }
}

void run(const Launch&, const GateLoad& a) {
  const GateShape& s = a.shape;
  std::vector<double> shares(static_cast<std::size_t>(s.experts), 0.0);
  std::fill(a.choices.begin(), a.choices.end(), 0.0F);
  for (const std::int32_t e : a.experts) get(a.choices, e) += 1;
  for (std::int64_t n = 0; n < s.tokens; ++n) {
    const std::span<const float> scores = row_of(a.scores, n, s.experts);
    const double sum = s.score == RouterScore::kSigmoid ? sum_of(scores) : 1.0;
    for (std::int64_t e = 0; e < s.experts; ++e) get(shares, e) += double{get(scores, e)} / sum;
  }
  for (std::int64_t e = 0; e < s.experts; ++e)
    get(a.shares, e) = static_cast<float>(get(shares, e));
}

void run(const Launch&, const GateAuxiliaryLoss& a) {
  const GateShape& s = a.shape;
  const auto tokens = static_cast<double>(s.tokens);
  double sum = 0;
  for (std::int64_t e = 0; e < s.experts; ++e)
    sum += double{get(a.choices, e)} * double{get(a.shares, e)};
  const double scale = s.tokens == 0
                           ? 0.0
                           : double{a.coefficient} * static_cast<double>(s.experts) /
                                 (static_cast<double>(s.experts_per_token) * tokens * tokens);
  *a.loss = static_cast<float>(scale * sum);
}

namespace {

/// Gradient with respect to the scores of token n: through the weights of its chosen experts.
///   w_k = scale p_k / S, S = sum of chosen p:  dp_j = scale (dw_j - sum_k dw_k p_k / S) / S
void add_weight_gradient(const GateBackward& a, std::int64_t n, std::vector<double>& dscores) {
  const GateShape& s = a.shape;
  const std::span<const float> scores = row_of(a.scores, n, s.experts);
  const std::span<const std::int32_t> chosen = row_of(a.experts, n, s.experts_per_token);
  const std::span<const float> dweights = row_of(a.dweights, n, s.experts_per_token);
  double sum = 0, product = 0;
  for (std::int64_t k = 0; k < s.experts_per_token; ++k) {
    const double p = double{get(scores, get(chosen, k))};
    sum += p;
    product += double{get(dweights, k)} * p;
  }
  for (std::int64_t k = 0; k < s.experts_per_token; ++k) {
    const double dw = double{get(dweights, k)};
    get(dscores, get(chosen, k)) +=
        double{s.scale} * (s.normalized ? (dw - product / sum) / sum : dw);
  }
}

/// Through the shares: share = p for softmax, p / sum of p for sigmoid.
void add_balance_gradient(const GateBackward& a, std::int64_t n, std::vector<double>& dscores) {
  const GateShape& s = a.shape;
  if (a.choices.empty()) return;
  const std::span<const float> scores = row_of(a.scores, n, s.experts);
  const bool divided = s.score == RouterScore::kSigmoid;
  const double sum = divided ? sum_of(scores) : 1.0;
  double product = 0;
  for (std::int64_t e = 0; divided && e < s.experts; ++e)
    product += double{get(a.choices, e)} * double{get(scores, e)} / sum;
  for (std::int64_t e = 0; e < s.experts; ++e)
    get(dscores, e) += double{a.share_scale} * (double{get(a.choices, e)} - product) / sum;
}

}  // namespace

void run(const Launch&, const GateBackward& a) {
  const GateShape& s = a.shape;
  for (std::int64_t n = 0; n < s.tokens; ++n) {
    std::vector<double> dscores(static_cast<std::size_t>(s.experts), 0.0);
    add_weight_gradient(a, n, dscores);
    add_balance_gradient(a, n, dscores);
    const std::span<const float> scores = row_of(a.scores, n, s.experts);
    double product = 0;  // softmax: dlogit = p (dp - sum of dp p)
    for (std::int64_t e = 0; e < s.experts; ++e)
      product += get(dscores, e) * double{get(scores, e)};
    for (std::int64_t e = 0; e < s.experts; ++e) {
      const double p = double{get(scores, e)}, dp = get(dscores, e);
      get(a.dlogits, n * s.experts + e) = static_cast<float>(
          s.score == RouterScore::kSoftmax ? p * (dp - product) : dp * p * (1 - p));
    }
  }
}

}  // namespace meshwright::reference
