#include "kernels/optimizer.hpp"

#include "kernels/bucket.hpp"
#include "tests/kernels/kernel_case.hpp"

namespace meshwright {
namespace {

// w = 1, gradient 0.5, betas 0.5 and 0.75 (exact in binary): after one step m = 0.25, v = 0.0625,
// corrected 0.5 and 0.25, so the direction is 0.5 / (0.5 + 0.5) with epsilon = 0.5; w = 1 - 0.1
// (0.2 * 1 + 0.5) = 0.93. Half of a gradient of 1 is the same.
TEST(OptimizerReference, AdamWByHand) {
  TestMatrix w(1, 1), m(1, 1), v(1, 1), g(1, 1), parameter(1, 1, Dtype::kBf16), scale(1, 1);
  w.fill(1), g.fill(1), scale.fill(0.5);
  run_kernel(reference_kernels().adamw, {.master = w,
                                         .first_moment = m,
                                         .second_moment = v,
                                         .gradient = g,
                                         .parameter = parameter,
                                         .learning_rate = 0.1F,
                                         .beta1 = 0.5F,
                                         .beta2 = 0.75F,
                                         .epsilon = 0.5F,
                                         .weight_decay = 0.2F,
                                         .gradient_scale = scale.data()});
  EXPECT_EQ(m[0], 0.25);
  EXPECT_EQ(v[0], 0.0625);
  EXPECT_NEAR(w[0], 0.93, 1e-6);
  EXPECT_EQ(parameter[0], from_bf16(to_bf16(static_cast<float>(w[0]))));
}

// v = 0.5 * 2 + (1 + 0.1 * 4) = 2.4; w = 4 - 0.5 * 2.4 = 2.8.
TEST(OptimizerReference, SgdByHand) {
  TestMatrix w(1, 1), v(1, 1), g(1, 1);
  w.fill(4), v.fill(2), g.fill(1);
  run_kernel(reference_kernels().sgd, {.master = w,
                                       .velocity = v,
                                       .gradient = g,
                                       .learning_rate = 0.5F,
                                       .momentum = 0.5F,
                                       .weight_decay = 0.1F});
  EXPECT_NEAR(v[0], 2.4, 1e-6);
  EXPECT_NEAR(w[0], 2.8, 1e-6);
}

// Norm of (3, 4) is 5: clipping at 1 scales by 1/5, at 10 not at all.
TEST(OptimizerReference, ClipsByTheGlobalNorm) {
  TestMatrix three(1, 1), four(1, 1), sum(1, 1), scale(1, 1);
  three.fill(3), four.fill(4);
  const KernelTable& kernels = reference_kernels();
  run_kernel(kernels.squared_norm, {.x = three, .sum = sum.data()});
  run_kernel(kernels.squared_norm, {.x = four, .sum = sum.data()});
  EXPECT_EQ(sum[0], 25);
  run_kernel(kernels.clip_scale, {.sum = sum.data(), .limit = 1, .scale = scale.data()});
  EXPECT_NEAR(scale[0], 0.2, 1e-6);
  run_kernel(kernels.clip_scale, {.sum = sum.data(), .limit = 10, .scale = scale.data()});
  EXPECT_EQ(scale[0], 1);
}

class OptimizerVariant : public VariantTest {};

// Three steps; each loses a few roundings of w (size 2) and of a step of 1e-2. The moments' share
// 1 - beta is the same number in both.
TEST_P(OptimizerVariant, UpdatesLikeTheReference) {
  for (const std::int64_t size : {0, 1, 3, 17, 63, 65, 1200})
    for (const bool momentum : {true, false}) {
      struct State {
        TestMatrix w, m, v, velocity, sgd, parameter;
      };
      const auto train = [&](const KernelTable& table) {
        State s{TestMatrix(1, size), TestMatrix(1, size), TestMatrix(1, size),
                TestMatrix(1, size), TestMatrix(1, size), TestMatrix(1, size, dtype())};
        TestMatrix g(1, size, dtype()), scale(1, 1);
        s.w.random(1, 2), s.sgd.random(2, 2), scale.fill(0.25);
        for (unsigned step = 1; step <= 3; ++step) {
          g.random(10 + step);
          run_kernel(table.adamw, {.master = s.w,
                                   .first_moment = s.m,
                                   .second_moment = s.v,
                                   .gradient = g,
                                   .parameter = s.parameter,
                                   .learning_rate = 1e-2F,
                                   .weight_decay = 0.1F,
                                   .step = step,
                                   .gradient_scale = scale.data()});
          Sgd sgd{.master = s.sgd, .gradient = g, .weight_decay = 0.1F};
          if (momentum) sgd.velocity = s.velocity, sgd.momentum = 0.9F;
          run_kernel(table.sgd, sgd);
        }
        return s;
      };
      const State actual = train(kernels()), expected = train(reference());
      expect_close(actual.w, expected.w, 16 * 0x1p-24, "w");
      expect_close(actual.m, expected.m, 8 * 0x1p-24, "m");
      expect_close(actual.v, expected.v, 8 * 0x1p-24, "v");
      expect_close(actual.sgd, expected.sgd, 16 * 0x1p-24, "sgd");
      expect_close(actual.velocity, expected.velocity, 16 * 0x1p-24, "velocity");
      expect_close(actual.parameter, expected.parameter, 16 * 0x1p-24, "parameter");
    }
}

// 5000 squares of multiples of 1/64: multiples of 2^-12 up to 5000, exact in fp32's 24 bits.
TEST_P(OptimizerVariant, SumsSquaresExactly) {
  for (const std::int64_t size : {0, 1, 17, 2000}) {
    TestMatrix x(1, size, dtype()), sum(1, 1);
    x.random(1), sum.fill(2);
    run_kernel(kernels().squared_norm, {.x = x, .sum = sum.data()});
    EXPECT_EQ(sum[0], 2 + dot(x, x));
  }
}

TEST_P(OptimizerVariant, UnpackingInvertsPacking) {
  TestMatrix a(3, 7, dtype()), b(1, 1300, dtype()), empty(1, 0, dtype()), bucket(1, 1400);
  a.random(1), b.random(2), bucket.random(3);
  const TestMatrix a_before = a, b_before = b, bucket_before = bucket;
  const std::vector<BucketPart> parts{{a, 5}, {empty, 26}, {b, 30}};
  run_kernel(kernels().pack_bucket, {.parts = parts, .bucket = bucket, .scale = 0.5F});
  EXPECT_EQ(bucket[4], bucket_before[4]);
  EXPECT_EQ(bucket[5], 0.5 * a[0]);
  EXPECT_EQ(bucket[25], 0.5 * a[20]);
  EXPECT_EQ(bucket[27], bucket_before[27]);
  EXPECT_EQ(bucket[1329], 0.5 * b[1299]);
  EXPECT_EQ(bucket[1330], bucket_before[1330]);
  run_kernel(kernels().unpack_bucket, {.bucket = bucket, .parts = parts, .scale = 2});
  EXPECT_TRUE(same_bits(a, a_before));
  EXPECT_TRUE(same_bits(b, b_before));
  run_kernel(kernels().unpack_bucket,
             {.bucket = bucket, .parts = parts, .scale = 2, .accumulate = true});
  for (std::int64_t i = 0; i < b.size(); ++i) EXPECT_EQ(b[i], 2 * b_before[i]);
}

MESHWRIGHT_ALL_VARIANTS(OptimizerVariant);

// ---- the table ------------------------------------------------------------------------------

TEST(KernelTable, NamesItsBackEndAndTheVectorCode) {
  EXPECT_EQ(kernel_table(Backend::kCpu).backend, Backend::kCpu);
  EXPECT_EQ(kernel_table(Backend::kReference).backend, Backend::kReference);
  EXPECT_EQ(name_of(Backend::kCpu), "cpu");
  const std::string fastest(runnable_cpu_levels().back().name);
  EXPECT_NE(kernels_summary().find(fastest), std::string::npos);
  EXPECT_NE(kernels_summary().find(products_by()), std::string::npos);
  EXPECT_ANY_THROW(kernel_table(Backend::kCuda));  // comes from the plug-in
}

}  // namespace
}  // namespace meshwright
