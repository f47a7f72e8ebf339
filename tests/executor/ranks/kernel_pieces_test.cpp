/// A call split into pieces computes the same as the whole call, with both CPU backends.
#include "executor/ranks/kernel_pieces.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "kernels/kernel_table.hpp"

namespace meshwright {
namespace {

/// Numbers without short periods.
std::vector<float> numbers(std::int64_t count, int from) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto n = static_cast<int>(i) + from;
    values[i] = static_cast<float>((n * 37 + n * n % 91) % 101) / 101.0F - 0.5F;
  }
  return values;
}
Matrix matrix(std::vector<float>& of, std::int64_t columns) {
  return dense_matrix(of.data(), std::ssize(of) / columns, columns, Dtype::kFp32);
}
Vector vector(std::vector<float>& of) { return {of.data(), std::ssize(of), Dtype::kFp32}; }

class KernelPieces : public testing::TestWithParam<Backend> {
 protected:
  const KernelTable& kernels_ = kernel_table(GetParam());
  int calls_ = 0;

  template <class Arguments>
  void run(const KernelEntry<Arguments>& kernel, const Arguments& all, const PieceLimits& limits) {
    calls_ = 0;
    in_pieces(all, limits, [&](const Arguments& piece) {
      const Bytes size = kernel.scratch_bytes(piece);
      std::vector<std::byte> scratch(static_cast<std::size_t>(size.value) + 64);
      void* data = scratch.data();
      std::size_t space = scratch.size();
      std::align(64, static_cast<std::size_t>(size.value), data, space);
      kernel({.stream = nullptr, .scratch = data, .scratch_size = size}, piece);
      ++calls_;
    });
  }
};

constexpr PieceLimits kWhole{};
constexpr PieceLimits kSevenElements{.elements = 7, .flop = 1e18};

TEST_P(KernelPieces, OfVectorsCoverAllElements) {
  std::vector<float> filled(45, 1.0F), copied(45), from = numbers(45, 3), sum = numbers(45, 9);
  run(kernels_.fill, {.y = vector(filled), .value = 2.5F}, kSevenElements);
  EXPECT_EQ(calls_, 7);  // 45 = 6 * 7 + 3
  EXPECT_EQ(filled, std::vector<float>(45, 2.5F));
  run(kernels_.cast, {.x = vector(from), .y = vector(copied)}, kSevenElements);
  EXPECT_EQ(copied, from);
  std::vector<float> expected = sum;
  for (std::size_t i = 0; i < sum.size(); ++i) expected[i] += from[i];
  run(kernels_.reduce, {.into = vector(sum), .from = vector(from)}, kSevenElements);
  EXPECT_EQ(sum, expected);
  // 1 + 4 + ... + 45^2 = 45 * 46 * 91 / 6, exact in every order
  std::iota(from.begin(), from.end(), 1.0F);
  float norm = 0;
  run(kernels_.squared_norm, {.x = vector(from), .sum = &norm}, kSevenElements);
  EXPECT_EQ(norm, 31395.0F);
}

TEST_P(KernelPieces, OfUpdatesUpdateAllParameters) {
  const auto updated = [&](const PieceLimits& limits) {
    std::vector<float> master = numbers(45, 1), first = numbers(45, 2), second(45, 0.25F);
    std::vector<float> gradient = numbers(45, 4);
    run(kernels_.adamw,
        {.master = master,
         .first_moment = first,
         .second_moment = second,
         .gradient = vector(gradient),
         .weight_decay = 0.1F,
         .step = 3},
        limits);
    master.insert(master.end(), first.begin(), first.end());
    master.insert(master.end(), second.begin(), second.end());
    return master;
  };
  const std::vector<float> whole = updated(kWhole);
  EXPECT_EQ(calls_, 1);
  EXPECT_EQ(updated(kSevenElements), whole);
  EXPECT_EQ(calls_, 7);
}

TEST_P(KernelPieces, OfSgdUpdateAllParameters) {
  for (const bool has_velocity : {false, true}) {
    const auto updated = [&](const PieceLimits& limits) {
      std::vector<float> master = numbers(45, 1), velocity = numbers(45, 2);
      std::vector<float> gradient = numbers(45, 4);
      Sgd all{.master = master, .gradient = vector(gradient), .weight_decay = 0.1F};
      if (has_velocity) all.velocity = velocity, all.momentum = 0.9F;
      run(kernels_.sgd, all, limits);
      master.insert(master.end(), velocity.begin(), velocity.end());
      return master;
    };
    const std::vector<float> whole = updated(kWhole);
    EXPECT_EQ(calls_, 1);
    EXPECT_EQ(updated(kSevenElements), whole);
    EXPECT_EQ(calls_, 7);
  }
}

// 2 * 8 * 5 = 80 flop per row: pieces of 64, 64 and 22 of 150 rows.
TEST_P(KernelPieces, OfGemmsAreRowBlocks) {
  constexpr std::int64_t kRows = 150, kDepth = 8, kColumns = 5;
  for (const bool transposed : {false, true}) {
    std::vector<float> a = numbers(kRows * kDepth, 5), b = numbers(kDepth * kColumns, 6);
    std::vector<float> bias = numbers(kColumns, 7), whole(kRows * kColumns), cut = whole;
    const auto product = [&](std::vector<float>& c) {
      return Gemm{.a = matrix(a, transposed ? kRows : kDepth),
                  .transpose_a = transposed,
                  .b = matrix(b, kColumns),
                  .c = matrix(c, kColumns),
                  .bias = vector(bias)};
    };
    run(kernels_.gemm, product(whole), kWhole);
    EXPECT_EQ(calls_, 1);
    run(kernels_.gemm, product(cut), {.flop = 80 * 64 + 1});
    EXPECT_EQ(calls_, 3);
    for (std::size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(cut[i], whole[i], 1e-6);
  }
}

/// 3 sequences of 6 queries, 4 heads of size 4 with 2 key heads, value size 2.
struct SmallAttention {
  AttentionShape shape{.sequences = 3,
                       .heads = 4,
                       .key_value_heads = 2,
                       .queries = 6,
                       .keys = 6,
                       .key_size = 4,
                       .value_size = 2,
                       .scale = 0.5F,
                       .dropout = {.mask = {.probability = 0.25F, .key = 12},
                                   .first_sequence = 5,
                                   .length = 6,
                                   .first_head = 0,
                                   .heads = 4}};
  std::vector<float> q = numbers(18 * 16, 1), k = numbers(18 * 8, 2), v = numbers(18 * 4, 3);
  std::vector<float> out = numbers(18 * 8, 4), sums = std::vector<float>(3 * 4 * 6);
  std::vector<float> dout = numbers(18 * 8, 5), delta = numbers(3 * 4 * 6, 6);
  std::vector<float> dq = numbers(18 * 16, 7), dk = numbers(18 * 8, 8), dv = numbers(18 * 4, 9);
  AttentionForward forward() {
    return {.shape = shape,
            .q = matrix(q, 16),
            .k = matrix(k, 8),
            .v = matrix(v, 4),
            .out = matrix(out, 8),
            .log_sum_exp = sums};
  }
  AttentionBackward backward(bool accumulate) {
    return {.shape = shape,
            .q = matrix(q, 16),
            .k = matrix(k, 8),
            .v = matrix(v, 4),
            .dout = matrix(dout, 8),
            .log_sum_exp = sums,
            .delta = delta,
            .dq = matrix(dq, 16),
            .dk = matrix(dk, 8),
            .dv = matrix(dv, 4),
            .accumulate = accumulate};
  }
};

// Forward takes 2 * 6 * 6 * (4 + 2) = 432 flop per head and sequence, 4 * 432 = 1728 per sequence;
// backward 1080 and 4320.
TEST_P(KernelPieces, OfAttentionAreSequencesAndHeads) {
  struct Cut {
    double flop;
    int forward, backward;  ///< number of calls
  };
  for (const Cut& cut : {Cut{1e18, 1, 1}, Cut{2 * 4320.0, 1, 2}, Cut{4320, 2, 3},
                         Cut{2 * 1080.0, 3, 6}, Cut{1, 6, 6}}) {
    SCOPED_TRACE(cut.flop);
    for (const bool accumulate : {false, true}) {
      SmallAttention whole, some;
      run(kernels_.attention_forward, whole.forward(), kWhole);
      run(kernels_.attention_backward, whole.backward(accumulate), kWhole);
      run(kernels_.attention_forward, some.forward(), {.flop = cut.flop});
      EXPECT_EQ(calls_, cut.forward);
      run(kernels_.attention_backward, some.backward(accumulate), {.flop = cut.flop});
      EXPECT_EQ(calls_, cut.backward);
      EXPECT_EQ(some.out, whole.out);
      EXPECT_EQ(some.sums, whole.sums);
      EXPECT_EQ(some.dq, whole.dq);
      EXPECT_EQ(some.dk, whole.dk);
      EXPECT_EQ(some.dv, whole.dv);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, KernelPieces, testing::Values(Backend::kReference, Backend::kCpu),
                         [](const auto& of) { return std::string(name_of(of.param)); });

}  // namespace
}  // namespace meshwright
