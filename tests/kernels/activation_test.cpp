#include "kernels/activation.hpp"

#include "kernels/rotary.hpp"
#include "tests/kernels/kernel_case.hpp"

namespace meshwright {
namespace {

const std::vector<ActivationFunction> kFunctions{
    ActivationFunction::kRelu,         ActivationFunction::kSquaredRelu,
    ActivationFunction::kGeluTanh,     ActivationFunction::kGeluErf,
    ActivationFunction::kSwiGlu,       ActivationFunction::kGegluTanh,
    ActivationFunction::kGegluErf,     ActivationFunction::kReglu,
    ActivationFunction::kClampedSwiGlu};
constexpr float kLimit = 0.75F;  // inputs are on both sides

struct ActivationCase {
  ActivationFunction function;
  TestMatrix x, up, dy, y, dx, dup;

  ActivationCase(ActivationFunction f, std::int64_t rows, std::int64_t columns, Dtype dtype)
      : function(f),
        x(rows, columns, dtype, 3),
        up(rows, columns, dtype, 1),
        dy(rows, columns, dtype),
        y(rows, columns, dtype, 2),
        dx(rows, columns, dtype, 1),
        dup(rows, columns, dtype) {
    x.random(1, 6), up.random(2), dy.random(3);
  }
  void run_all(const KernelTable& kernels) {
    run_kernel(kernels.activation_forward,
               {.function = function, .x = x, .up = up, .y = y, .limit = kLimit});
    run_kernel(
        kernels.activation_backward,
        {.function = function, .x = x, .up = up, .dy = dy, .dx = dx, .dup = dup, .limit = kLimit});
  }
};

double value_at(ActivationFunction function, double x) {
  ActivationCase c(function, 1, 1, Dtype::kFp32);
  c.x.set(0, x), c.up.set(0, 3);
  c.run_all(reference_kernels());
  return c.y[0];
}

// Phi(1) = 0.841344746; tanh(0.79788456 * 1.044715) = 0.682383838, so 0.841191919; silu(1) =
// 1 / (1 + 1/e) = 0.731058579, times 3.
TEST(ActivationReference, ValuesByHand) {
  EXPECT_NEAR(value_at(ActivationFunction::kRelu, -2), 0, 0);
  EXPECT_NEAR(value_at(ActivationFunction::kRelu, 2), 2, 0);
  EXPECT_NEAR(value_at(ActivationFunction::kSquaredRelu, -2), 0, 0);
  EXPECT_NEAR(value_at(ActivationFunction::kSquaredRelu, 3), 9, 0);
  EXPECT_NEAR(value_at(ActivationFunction::kGeluErf, 1), 0.841344746, 1e-7);
  EXPECT_NEAR(value_at(ActivationFunction::kGeluTanh, 1), 0.841191991, 2e-7);
  EXPECT_NEAR(value_at(ActivationFunction::kSwiGlu, 1), 2.193175736, 3e-7);
  EXPECT_NEAR(value_at(ActivationFunction::kGegluErf, 1), 3 * 0.841344746, 3e-7);
  EXPECT_NEAR(value_at(ActivationFunction::kGegluTanh, 1), 3 * 0.841191991, 6e-7);
  EXPECT_NEAR(value_at(ActivationFunction::kReglu, 2), 6, 0);
  // Gate and up become 0.75: 0.75 / (1 + e^-1.2765) * 1.75 = 1.3125 * 0.7818534.
  EXPECT_NEAR(value_at(ActivationFunction::kClampedSwiGlu, 1), 1.0261826, 1e-6);
}

TEST(ActivationReference, GradientsEqualFiniteDifferences) {
  for (const ActivationFunction function : kFunctions) {
    ActivationCase c(function, 2, 9, Dtype::kFp32);
    for (std::int64_t i = 0; i < c.x.size(); ++i)  // not within 2 h of ReLU's kink
      if (std::abs(c.x[i]) < 0.1 || std::abs(c.x[i] - kLimit) < 0.1) c.x.set(i, 0.5);
    for (std::int64_t i = 0; i < c.up.size(); ++i)  // nor of the clamp's
      if (std::abs(std::abs(c.up[i]) - kLimit) < 0.1) c.up.set(i, -0.5);
    c.run_all(reference_kernels());
    const TestMatrix dx = c.dx, dup = c.dup;
    const auto loss = [&] {
      c.run_all(reference_kernels());
      return dot(c.y, c.dy);
    };
    expect_gradient(c.x, dx, loss, "dx");
    if (is_gated(function)) expect_gradient(c.up, dup, loss, "dup");
  }
}

class ActivationVariant : public VariantTest {};

// A dozen roundings of values up to 6; the error function is a polynomial good to 1.5e-7 (times
// 6 / 2), the slope multiplies values of up to 10 with relative errors of 2^-24.
TEST_P(ActivationVariant, EqualsTheReference) {
  for (const ActivationFunction function : kFunctions)
    for (const std::int64_t columns : {0, 1, 3, 17, 63, 65, 1030}) {
      ActivationCase actual(function, 5, columns, dtype());
      ActivationCase expected(function, 5, columns, dtype());
      actual.run_all(kernels());
      expected.run_all(reference());
      const std::string what =
          std::to_string(static_cast<int>(function)) + " of " + std::to_string(columns);
      expect_close(actual.y, expected.y, 32 * 0x1p-24, what + " y");
      expect_close(actual.dx, expected.dx, 32 * 0x1p-24, what + " dx");
      expect_close(actual.dup, expected.dup, 32 * 0x1p-24, what + " dup");
    }
}

// Far out every function is 0 or x (ReLU^2: x^2), without NaN from infinity times zero.
TEST_P(ActivationVariant, SaturatesForLargeArguments) {
  for (const ActivationFunction function : kFunctions) {
    if (function == ActivationFunction::kClampedSwiGlu) continue;
    ActivationCase c(function, 1, 4, dtype());
    c.up.fill(1), c.dy.fill(1);
    c.x.set(0, -1024), c.x.set(1, 1024), c.x.set(2, -128), c.x.set(3, 128);
    c.run_all(kernels());
    for (std::int64_t i = 0; i < 4; ++i) {
      const bool left = c.x[i] < 0;
      const bool squares = function == ActivationFunction::kSquaredRelu;
      const double y = squares ? c.x[i] * c.x[i] : c.x[i], slope = squares ? 2 * c.x[i] : 1;
      EXPECT_EQ(c.y[i], left ? 0 : y) << static_cast<int>(function);
      EXPECT_EQ(c.dx[i], left ? 0 : slope) << static_cast<int>(function);
    }
  }
}

MESHWRIGHT_ALL_VARIANTS(ActivationVariant);

// ---- rotary ---------------------------------------------------------------------------------

TestMatrix rotary_table_of(const KernelTable& kernels, const std::vector<float>& frequencies,
                           std::int64_t positions) {
  TestMatrix table(positions, 2 * std::ssize(frequencies));
  run_kernel(kernels.rotary_table,
             {.frequencies = frequencies, .positions = positions, .table = table});
  return table;
}

RotaryAngles angles_of(double base) {
  RotaryAngles angles;
  angles.base = base;
  return angles;
}

// base 100, four elements: frequencies 1 and 1/10. Position 2: angles 2 and 0.2.
TEST(RotaryReference, RotatesPairsByHand) {
  const std::vector<float> frequencies = rotary_frequencies(4, angles_of(100), 3);
  ASSERT_EQ(frequencies.size(), 2u);
  EXPECT_FLOAT_EQ(frequencies[0], 1);
  EXPECT_FLOAT_EQ(frequencies[1], 0.1F);
  const TestMatrix table = rotary_table_of(reference_kernels(), frequencies, 3);
  TestMatrix x(1, 4), y(1, 4);
  for (int i = 0; i < 4; ++i) x.set(i, i + 1);
  const std::vector<std::int32_t> positions{2};
  Rotary rotary{
      .x = x, .y = y, .head_size = 4, .rotated = 4, .table = table, .positions = positions};
  run_kernel(reference_kernels().rotary, rotary);  // pairs (1, 3) and (2, 4)
  EXPECT_NEAR(y[0], std::cos(2.0) - 3 * std::sin(2.0), 1e-6);
  EXPECT_NEAR(y[2], std::sin(2.0) + 3 * std::cos(2.0), 1e-6);
  EXPECT_NEAR(y[1], 2 * std::cos(0.2) - 4 * std::sin(0.2), 1e-6);
  rotary.pairs = RotaryPairs::kNeighbors;  // pairs (1, 2) and (3, 4)
  run_kernel(reference_kernels().rotary, rotary);
  EXPECT_NEAR(y[0], std::cos(2.0) - 2 * std::sin(2.0), 1e-6);
  EXPECT_NEAR(y[3], 3 * std::sin(0.2) + 4 * std::cos(0.2), 1e-6);
}

// Pair 1 of 4 elements at base 100 turns by 1/10, divided by 2; long sequences have other divisors.
TEST(RotaryReference, DividesFrequenciesByTheLengthOfSequences) {
  const RotaryAngles angles{
      .base = 100, .divisors = {1, 2}, .long_divisors = {4, 5}, .long_from = 8, .magnitude = 1.5};
  EXPECT_FLOAT_EQ(rotary_frequencies(4, angles, 8)[1], 0.05F);
  EXPECT_FLOAT_EQ(rotary_frequencies(4, angles, 9)[0], 0.25F);
  TestMatrix table(1, 4);
  run_kernel(reference_kernels().rotary_table, {.frequencies = rotary_frequencies(4, angles, 8),
                                                .positions = 1,
                                                .scale = angles.magnitude,
                                                .table = table});
  EXPECT_EQ(table[0], 1.5);  // cos(0)
}

// Without rotation, intervals of 2 positions: position 3 has had two, its factor is 1 + ln(3) / 2.
TEST(RotaryReference, ScalesByTheTemperatureOfPositions) {
  const std::vector<float> frequencies(1);
  TestMatrix table(4, 2);
  run_kernel(reference_kernels().rotary_table, {.frequencies = frequencies,
                                                .positions = 4,
                                                .temperature = {.growth = 0.5, .interval = 2},
                                                .table = table});
  EXPECT_EQ(table[0], 1);
  EXPECT_FLOAT_EQ(static_cast<float>(table[6]), static_cast<float>(1 + std::log(3.0) / 2));
  EXPECT_EQ(table[7], 0);
}

class RotaryVariant : public VariantTest {};

TEST_P(RotaryVariant, MakesTheTableOfTheReference) {
  const std::vector<float> frequencies = rotary_frequencies(6, {}, 40);
  const auto table_of = [&](const KernelTable& table_kernels) {
    TestMatrix table(40, 6);
    run_kernel(table_kernels.rotary_table, {.frequencies = frequencies,
                                            .first_position = 3,
                                            .positions = 40,
                                            .scale = 1.5,
                                            .temperature = {.growth = 0.1, .interval = 7},
                                            .table = table});
    return table;
  };
  expect_close(table_of(kernels()), table_of(reference()), 0x1p-23, "table");
}

// Two products and a sum of values up to 1.
TEST_P(RotaryVariant, EqualsTheReferenceAndInverts) {
  for (const RotaryPairs pairs : {RotaryPairs::kHalves, RotaryPairs::kNeighbors})
    for (const std::int64_t rotated : {0, 2, 18, 64}) {
      const TestMatrix table = rotary_table_of(kernels(), rotary_frequencies(rotated, {}, 40), 40);
      std::vector<std::int32_t> positions;
      for (int r = 0; r < 17; ++r) positions.push_back(r * 11 % 40);
      TestMatrix x(17, 3 * 67, dtype(), 2), y(17, 3 * 67, dtype()), expected(17, 3 * 67, dtype());
      x.random(1);
      Rotary rotary{.x = x,
                    .y = y,
                    .heads = 3,
                    .head_size = 67,
                    .first = 3,
                    .rotated = rotated,
                    .pairs = pairs,
                    .table = table,
                    .positions = positions};
      run_kernel(kernels().rotary, rotary);
      rotary.y = expected;
      run_kernel(reference().rotary, rotary);
      expect_close(y, expected, 4 * 0x1p-24, "rotated");
      // The gradient of a rotation is the rotation back: in place, it gives x again.
      rotary.x = y, rotary.y = y, rotary.inverse = true;
      run_kernel(kernels().rotary, rotary);
      expect_close(y, x, 8 * 0x1p-24 + 4 * unit_of(dtype()), "turned back");
    }
}

// One head to three, and the sum of three to one: each is the gradient of the other.
TEST_P(RotaryVariant, CopiesAndSumsHeads) {
  TestMatrix one(5, 10, dtype()), three(5, 3 * 8, dtype());
  one.random(1);
  run_kernel(kernels().copy_heads, {.x = one,
                                    .y = three,
                                    .heads_x = 1,
                                    .size_x = 10,
                                    .from = 4,
                                    .heads_y = 3,
                                    .size_y = 8,
                                    .to = 2,
                                    .count = 6});
  for (std::int64_t head = 0; head < 3; ++head) {
    EXPECT_EQ(three(4, 8 * head + 1), 0);
    for (std::int64_t i = 0; i < 6; ++i) EXPECT_EQ(three(4, 8 * head + 2 + i), one(4, 4 + i));
  }
  TestMatrix sum(5, 10, dtype());
  run_kernel(kernels().copy_heads, {.x = three,
                                    .y = sum,
                                    .heads_x = 3,
                                    .size_x = 8,
                                    .from = 2,
                                    .heads_y = 1,
                                    .size_y = 10,
                                    .to = 4,
                                    .count = 6});
  for (std::int64_t i = 0; i < 6; ++i)
    EXPECT_NEAR(sum(4, 4 + i), 3 * one(4, 4 + i), 6 * unit_of(dtype()));
}

MESHWRIGHT_ALL_VARIANTS(RotaryVariant);

}  // namespace
}  // namespace meshwright
