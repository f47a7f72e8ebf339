// The router: one warp per token, lanes over experts.
#include <cmath>

#include "kernels/cuda/activation.hpp"
#include "kernels/cuda/pack.hpp"

namespace meshwright::cuda {
namespace {

constexpr int kThreads = 256, kTokens = kThreads / kWarp;  ///< of a block
constexpr float kInfinity = INFINITY;

struct Shape {
  std::int64_t tokens;
  int experts, chosen;
  int groups, chosen_groups, summed_keys;
  bool softmax, normalized;
  float scale;
};
Shape shape_of(const GateShape& s) {
  return {s.tokens,
          static_cast<int>(s.experts),
          static_cast<int>(s.experts_per_token),
          static_cast<int>(s.groups),
          static_cast<int>(s.chosen_groups),
          static_cast<int>(s.summed_keys()),
          s.score == RouterScore::kSoftmax,
          s.normalized,
          s.scale};
}
unsigned blocks_for(const GateShape& s) { return grid_of(ceil_divide(s.tokens, kTokens)); }

__device__ std::int64_t my_token() {
  return static_cast<std::int64_t>(blockIdx.x) * kTokens + threadIdx.x / kWarp;
}
__device__ int my_lane() { return static_cast<int>(threadIdx.x) % kWarp; }

/// Writes the scores of a token; `scores` may be `logits`.
__device__ void score(const Shape& s, const float* logits, float* scores) {
  if (!s.softmax) {
    for (int e = my_lane(); e < s.experts; e += kWarp) scores[e] = sigmoid(logits[e]);
    return;
  }
  float maximum = -kInfinity;
  for (int e = my_lane(); e < s.experts; e += kWarp) maximum = fmaxf(maximum, logits[e]);
  maximum = warp_max(maximum);
  float sum = 0;
  for (int e = my_lane(); e < s.experts; e += kWarp) {
    const float value = expf(logits[e] - maximum);
    scores[e] = value;
    sum += value;
  }
  sum = warp_sum(sum);
  for (int e = my_lane(); e < s.experts; e += kWarp) scores[e] /= sum;
}

/// An expert (or a group of experts) and its key. Chosen in order of descending keys and ascending
/// indices; NaN is never chosen; if none is left, index 0.
struct Choice {
  float key;
  int expert;
};
__device__ Choice better(Choice a, Choice b) {
  if (b.expert < 0) return a;
  if (a.expert < 0) return b;
  if (b.key > a.key || (b.key == a.key && b.expert < a.expert)) return b;
  return a;
}
__device__ bool is_left(float key, int number, bool is_first, Choice last) {
  return is_first ? key == key : key < last.key || (key == last.key && number > last.expert);
}
__device__ Choice best_of_warp(Choice best) {
#pragma unroll
  for (int lane = kWarp / 2; lane > 0; lane /= 2)
    best = better(best, {__shfl_xor_sync(0xFFFFFFFFU, best.key, lane),
                         __shfl_xor_sync(0xFFFFFFFFU, best.expert, lane)});
  if (best.expert < 0) best.expert = 0;
  return best;
}

/// Keys by which experts are chosen.
struct Keys {
  const float *scores, *correction;
  __device__ float at(int e) const {
    return correction == nullptr ? scores[e] : scores[e] + correction[e];
  }
};

/// Groups of experts from which a token's may be chosen, one bit each: those whose largest keys
/// have the largest sum. A lane has two groups; keys are summed best first.
__device__ std::uint64_t open_groups(const Shape& s, const Keys& keys) {
  if (s.chosen_groups >= s.groups) return ~std::uint64_t{0};
  const int size = s.experts / s.groups;
  const int most = s.summed_keys;
  float sums[2] = {0.0F, 0.0F};
  for (int i = 0; i < 2; ++i) {
    const int group = my_lane() + i * kWarp;
    Choice last{0.0F, -1};
    for (int k = 0; group < s.groups && k < most && k < size; ++k) {
      Choice best{0.0F, -1};
      for (int e = group * size; e < (group + 1) * size; ++e)
        if (is_left(keys.at(e), e, k == 0, last)) best = better(best, {keys.at(e), e});
      if (best.expert < 0) break;
      sums[i] += best.key;
      last = best;
    }
  }
  std::uint64_t open = 0;
  Choice last{0.0F, -1};
  for (int c = 0; c < s.chosen_groups; ++c) {
    Choice best{0.0F, -1};
    for (int i = 0; i < 2; ++i) {
      const int group = my_lane() + i * kWarp;
      if (group < s.groups && is_left(sums[i], group, c == 0, last))
        best = better(best, {sums[i], group});
    }
    last = best_of_warp(best);
    open |= std::uint64_t{1} << last.expert;
  }
  return open;
}

__device__ Choice next_best(const Shape& s, const Keys& keys, std::uint64_t open, bool is_first,
                            Choice last) {
  const int size = s.experts / s.groups;
  Choice best{0.0F, -1};
  for (int e = my_lane(); e < s.experts; e += kWarp) {
    if ((open >> (e / size) & 1U) == 0) continue;
    if (is_left(keys.at(e), e, is_first, last)) best = better(best, {keys.at(e), e});
  }
  return best_of_warp(best);
}

__global__ void __launch_bounds__(kThreads)
    gate_kernel(const Shape s, const float* logits, const float* correction, float* scores,
                std::int32_t* experts, float* weights) {
  const std::int64_t n = my_token();
  if (n >= s.tokens) return;  // whole warps
  float* mine = scores + n * s.experts;
  score(s, logits + n * s.experts, mine);
  __syncwarp();  // scores are read across lanes below
  const Keys keys{mine, correction};
  const std::uint64_t open = open_groups(s, keys);
  Choice last{0.0F, -1};
  float sum = 0;
  for (int k = 0; k < s.chosen; ++k) {
    last = next_best(s, keys, open, k == 0, last);
    sum += mine[last.expert];
    if (my_lane() == 0) experts[n * s.chosen + k] = last.expert;
  }
  __syncwarp();  // what lane 0 wrote is read below
  const float factor = s.normalized ? s.scale / sum : s.scale;
  for (int k = my_lane(); k < s.chosen; k += kWarp)
    weights[n * s.chosen + k] = factor * mine[experts[n * s.chosen + k]];
}

/// Sum of the scores of each token: the divisor of sigmoid's shares.
__global__ void __launch_bounds__(kThreads)
    score_sums_kernel(const Shape s, const float* scores, float* sums) {
  const std::int64_t n = my_token();
  if (n >= s.tokens) return;
  float sum = 0;
  for (int e = my_lane(); e < s.experts; e += kWarp) sum += scores[n * s.experts + e];
  sum = warp_sum(sum);
  if (my_lane() == 0) sums[n] = sum;
}

/// One block per expert: the number of its choices, and its shares.
__global__ void __launch_bounds__(kThreads)
    load_kernel(const Shape s, const float* scores, const float* sums, const std::int32_t* experts,
                float* choices, float* shares) {
  __shared__ float shared[kThreads / kWarp];
  const int e = static_cast<int>(blockIdx.x);
  int count = 0;
  for (std::int64_t i = threadIdx.x; i < s.tokens * s.chosen; i += kThreads)
    count += experts[i] == e ? 1 : 0;
  float share = 0;
#pragma unroll 4
  for (std::int64_t n = threadIdx.x; n < s.tokens; n += kThreads)
    share += sums == nullptr ? scores[n * s.experts + e] : scores[n * s.experts + e] / sums[n];
  const float total = row_sum(static_cast<float>(count), shared);  // exact below 2^24
  share = row_sum(share, shared);
  if (threadIdx.x != 0) return;
  choices[e] = total;
  shares[e] = share;
}

__global__ void auxiliary_loss_kernel(const int experts, const double scale, const float* choices,
                                      const float* shares, float* loss) {
  double sum = 0;
  for (int e = my_lane(); e < experts; e += kWarp)
    sum += static_cast<double>(choices[e]) * static_cast<double>(shares[e]);
  sum = warp_sum(sum);
  if (my_lane() == 0) *loss = static_cast<float>(scale * sum);
}

/// The formulas of reference/moe_gate.cpp, lanes over experts.
__global__ void __launch_bounds__(kThreads)
    gate_backward_kernel(const Shape s, const float* scores, const std::int32_t* experts,
                         const float* dweights, const float* choices, const float share_scale,
                         float* dlogits) {
  const std::int64_t n = my_token();
  if (n >= s.tokens) return;
  const float* p = scores + n * s.experts;
  const std::int32_t* chosen = experts + n * s.chosen;
  const float* dw = dweights + n * s.chosen;
  float* d = dlogits + n * s.experts;
  float sum = 0, product = 0;  // over the chosen; the same in all lanes
  for (int k = 0; k < s.chosen; ++k) {
    sum += p[chosen[k]];
    product += dw[k] * p[chosen[k]];
  }
  float all = 1, balance = 0;  // of the shares: divided by the sum of scores for sigmoid
  if (choices != nullptr && !s.softmax) {
    float score_sum = 0, choice_sum = 0;
    for (int e = my_lane(); e < s.experts; e += kWarp) {
      score_sum += p[e];
      choice_sum += choices[e] * p[e];
    }
    all = warp_sum(score_sum);
    balance = warp_sum(choice_sum) / all;
  }
  float mean = 0;
  for (int e = my_lane(); e < s.experts; e += kWarp) {
    float dscore = 0;
    for (int k = 0; k < s.chosen; ++k)
      if (chosen[k] == e)
        dscore += s.scale * (s.normalized ? (dw[k] - product / sum) / sum : dw[k]);
    if (choices != nullptr) dscore += share_scale * (choices[e] - balance) / all;
    d[e] = dscore;
    mean += dscore * p[e];
  }
  mean = warp_sum(mean);
  for (int e = my_lane(); e < s.experts; e += kWarp)  // each lane reads what it wrote
    d[e] = s.softmax ? p[e] * (d[e] - mean) : d[e] * p[e] * (1.0F - p[e]);
}

}  // namespace

void run(const Launch& launch, const GateForward& a) {
  if (a.shape.tokens == 0) return;
  gate_kernel<<<blocks_for(a.shape), kThreads, 0, stream_of(launch)>>>(
      shape_of(a.shape), a.logits.data(), a.correction.empty() ? nullptr : a.correction.data(),
      a.scores.data(), a.experts.data(), a.weights.data());
  check_launch();
}

Bytes scratch(const GateLoad& a) {
  Pieces pieces;
  if (a.shape.score == RouterScore::kSigmoid) pieces.take<float>(a.shape.tokens);
  return pieces.bytes();
}

void run(const Launch& launch, const GateLoad& a) {
  const Shape s = shape_of(a.shape);
  float* sums = nullptr;
  if (!s.softmax && s.tokens > 0) {
    sums = Pieces(launch).take<float>(s.tokens);
    score_sums_kernel<<<blocks_for(a.shape), kThreads, 0, stream_of(launch)>>>(s, a.scores.data(),
                                                                               sums);
    check_launch();
  }
  load_kernel<<<grid_of(a.shape.experts), kThreads, 0, stream_of(launch)>>>(
      s, a.scores.data(), sums, a.experts.data(), a.choices.data(), a.shares.data());
  check_launch();
}

void run(const Launch& launch, const GateAuxiliaryLoss& a) {
  const GateShape& s = a.shape;
  const auto tokens = static_cast<double>(s.tokens);
  const double scale = s.tokens == 0
                           ? 0.0
                           : static_cast<double>(a.coefficient) * static_cast<double>(s.experts) /
                                 (static_cast<double>(s.experts_per_token) * tokens * tokens);
  auxiliary_loss_kernel<<<1, kWarp, 0, stream_of(launch)>>>(
      static_cast<int>(s.experts), scale, a.choices.data(), a.shares.data(), a.loss);
  check_launch();
}

void run(const Launch& launch, const GateBackward& a) {
  if (a.shape.tokens == 0) return;
  gate_backward_kernel<<<blocks_for(a.shape), kThreads, 0, stream_of(launch)>>>(
      shape_of(a.shape), a.scores.data(), a.experts.data(), a.dweights.data(),
      a.choices.empty() ? nullptr : a.choices.data(), a.share_scale, a.dlogits.data());
  check_launch();
}

}  // namespace meshwright::cuda
