#include "kernels/cross_entropy.hpp"

#include "tests/kernels/kernel_case.hpp"

namespace meshwright {
namespace {

struct LossCase {
  std::int64_t rows, tokens, columns;
  TestMatrix logits, maximum, sum, loss, gradient;
  std::vector<std::int32_t> targets;

  LossCase(std::int64_t row_count, std::int64_t word_count, std::int64_t column_count, Dtype dtype)
      : rows(row_count),
        tokens(word_count),
        columns(column_count),
        logits(rows, columns, dtype, 2),
        maximum(1, rows),
        sum(1, rows),
        loss(1, rows),
        gradient(rows, columns, dtype, 1) {
    logits.random(1, 8);
    for (std::int64_t n = 0; n < rows; ++n)  // every fourth row is masked
      targets.push_back(n % 4 == 3 ? -1 : static_cast<std::int32_t>(n * 7 % tokens));
  }
  LogitShard shard() { return {.logits = logits, .tokens = tokens, .first_token = 0}; }
  void run_all(const KernelTable& kernels) {
    run_kernel(
        kernels.cross_entropy_forward,
        {.shard = shard(), .targets = targets, .maximum = maximum, .sum = sum, .loss = loss});
    run_kernel(kernels.cross_entropy_gradient, {.shard = shard(),
                                                .targets = targets,
                                                .maximum = maximum,
                                                .sum = sum,
                                                .scale = 0.25F,
                                                .dlogits = gradient});
  }
};

// Logits 0, 0, ln 2: probabilities 1/4, 1/4, 1/2. Target 2: loss ln 2; gradient (1/4, 1/4, -1/2),
// times the scale of 1/4.
TEST(CrossEntropyReference, LossAndGradientByHand) {
  LossCase c(1, 3, 3, Dtype::kFp32);
  c.logits.set(0, 0), c.logits.set(1, 0), c.logits.set(2, std::log(2.0));
  c.targets = {2};
  c.run_all(reference_kernels());
  EXPECT_NEAR(c.loss[0], std::log(2.0), 1e-7);
  EXPECT_NEAR(c.gradient[0], 0.0625, 1e-7);
  EXPECT_NEAR(c.gradient[1], 0.0625, 1e-7);
  EXPECT_NEAR(c.gradient[2], -0.125, 1e-7);
}

TEST(CrossEntropyReference, GradientEqualsFiniteDifferences) {
  LossCase c(4, 5, 6, Dtype::kFp32);
  c.logits.random(3, 2);
  c.run_all(reference_kernels());
  TestMatrix gradient = c.gradient;
  expect_gradient(
      c.logits, gradient,
      [&] {
        c.run_all(reference_kernels());
        double sum = 0;
        for (std::int64_t n = 0; n < c.rows; ++n) sum += c.loss[n];
        return 0.25 * sum;
      },
      "dlogits");
}

class CrossEntropyVariant : public VariantTest {};

// The sum of V exponentials <= 1 loses up to V / 16 roundings of its lanes, relatively; its
// logarithm, ~10, is rounded to 2^-24 * 16. A probability is at most 1.
TEST_P(CrossEntropyVariant, EqualsTheReference) {
  for (const std::int64_t rows : {0, 1, 3, 17})
    for (const std::int64_t tokens : {1, 3, 17, 63, 65, 1500}) {
      LossCase actual(rows, tokens, tokens + 3, dtype()),
          expected(rows, tokens, tokens + 3, dtype());
      actual.run_all(kernels());
      expected.run_all(reference());
      const std::string what =
          std::to_string(rows) + " rows, " + std::to_string(tokens) + " tokens";
      expect_close(actual.maximum, expected.maximum, 0, what);
      expect_close(actual.sum, expected.sum,
                   static_cast<double>(tokens) * static_cast<double>(tokens + 16) * 0x1p-28, what);
      expect_close(actual.loss, expected.loss, 0x1p-19 + static_cast<double>(tokens) * 0x1p-28,
                   what);
      expect_close(actual.gradient, expected.gradient, 8 * 0x1p-24, what);
    }
}

// Three ranks with 4, 4 and 2 columns (and 0, 0 and 2 of padding) equal one rank with 10.
TEST_P(CrossEntropyVariant, VocabularyShardsGiveTheFullLoss) {
  LossCase whole(9, 10, 10, dtype());
  whole.run_all(reference());
  TestMatrix maximum(1, 9), sum(1, 9), target_logit(1, 9), loss(1, 9), gradient(9, 12, dtype());
  maximum.fill(-std::numeric_limits<double>::infinity());
  TestMatrix padded(9, 12, dtype());
  padded.fill(1e4);  // padding is never read
  for (std::int64_t n = 0; n < 9; ++n)
    for (std::int64_t v = 0; v < 10; ++v) padded.set(n, v, whole.logits(n, v));
  const auto shard = [&](std::int64_t rank) {
    return LogitShard{.logits = columns_of(ConstMatrix(padded), 4 * rank, 4),
                      .tokens = rank == 2 ? 2 : 4,
                      .first_token = 4 * rank};
  };
  for (std::int64_t rank = 0; rank < 3; ++rank) {
    TestMatrix local(1, 9);
    run_kernel(kernels().cross_entropy_maximum, {.shard = shard(rank), .maximum = local});
    run_kernel(kernels().reduce,
               {.reduction = Reduction::kMaximum, .into = maximum, .from = local});
  }
  for (std::int64_t rank = 0; rank < 3; ++rank) {
    TestMatrix local_sum(1, 9), local_logit(1, 9);
    run_kernel(kernels().cross_entropy_sum, {.shard = shard(rank),
                                             .targets = whole.targets,
                                             .maximum = maximum,
                                             .sum = local_sum,
                                             .target_logit = local_logit});
    run_kernel(kernels().reduce, {.into = sum, .from = local_sum});
    run_kernel(kernels().reduce, {.into = target_logit, .from = local_logit});
  }
  run_kernel(kernels().cross_entropy_loss, {.targets = whole.targets,
                                            .maximum = maximum,
                                            .sum = sum,
                                            .target_logit = target_logit,
                                            .loss = loss});
  for (std::int64_t rank = 0; rank < 3; ++rank)
    run_kernel(kernels().cross_entropy_gradient,
               {.shard = shard(rank),
                .targets = whole.targets,
                .maximum = maximum,
                .sum = sum,
                .scale = 0.25F,
                .dlogits = columns_of(Matrix(gradient), 4 * rank, 4)});
  expect_close(maximum, whole.maximum, 0, "maximum");
  expect_close(loss, whole.loss, 0x1p-19, "loss");
  for (std::int64_t n = 0; n < 9; ++n) {
    for (std::int64_t v = 0; v < 10; ++v)
      EXPECT_NEAR(gradient(n, v), whole.gradient(n, v),
                  8 * 0x1p-24 + 2 * unit_of(dtype()) * std::abs(whole.gradient(n, v)));
    EXPECT_EQ(gradient(n, 10), 0);
    EXPECT_EQ(gradient(n, 11), 0);
  }
}

// e^10000 is far beyond fp32; relative to the maximum nothing overflows. One logit stands out by
// 10000, so its loss is 0 and its gradient too.
TEST_P(CrossEntropyVariant, HandlesHugeLogits) {
  LossCase c(2, 20, 20, dtype());
  c.logits.fill(-1e4);
  c.logits.set(0, 5, 1e4), c.logits.set(1, 5, 1e4);
  c.targets = {5, 5};
  c.run_all(kernels());
  EXPECT_EQ(c.loss[0], 0);
  for (std::int64_t v = 0; v < 20; ++v) EXPECT_EQ(c.gradient(0, v), 0);
}

MESHWRIGHT_ALL_VARIANTS(CrossEntropyVariant);

}  // namespace
}  // namespace meshwright
