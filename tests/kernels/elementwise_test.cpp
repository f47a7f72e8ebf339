#include "kernels/elementwise.hpp"

#include "tests/kernels/kernel_case.hpp"

namespace meshwright {
namespace {

float bits_of(std::uint32_t bits) { return std::bit_cast<float>(bits); }

// bf16 keeps 7 bits after the leading one: near 1, steps of 2^-7.
TEST(Bfloat16, RoundsToNearestEven) {
  EXPECT_EQ(from_bf16(to_bf16(1 + 0x1p-8F)), 1.0F);                    // tie, 1 is even
  EXPECT_EQ(from_bf16(to_bf16(1 + 0x3p-8F)), 1 + 0x1p-6F);             // tie, away from odd
  EXPECT_EQ(from_bf16(to_bf16(1 + 0x1p-8F + 0x1p-20F)), 1 + 0x1p-7F);  // just above the tie
  EXPECT_EQ(from_bf16(to_bf16(1 + 0x3p-8F - 0x1p-20F)), 1 + 0x1p-7F);  // just below
  EXPECT_EQ(from_bf16(to_bf16(-1 - 0x1p-8F)), -1.0F);
  EXPECT_EQ(from_bf16(to_bf16(-1 - 0x3p-8F)), -1 - 0x1p-6F);
  EXPECT_EQ(from_bf16(to_bf16(2 - 0x1p-10F)), 2.0F);  // carries into the exponent
}

TEST(Bfloat16, KeepsSpecialValues) {
  EXPECT_EQ(to_bf16(0.0F), 0);
  EXPECT_EQ(to_bf16(-0.0F), 0x8000);
  EXPECT_EQ(to_bf16(std::numeric_limits<float>::infinity()), 0x7F80);
  EXPECT_EQ(to_bf16(-std::numeric_limits<float>::infinity()), 0xFF80);
  EXPECT_EQ(to_bf16(std::numeric_limits<float>::max()), 0x7F80);     // beyond the largest bf16
  EXPECT_EQ(to_bf16(bits_of(0x7F7F0000)), 0x7F7F);                   // the largest bf16
  EXPECT_EQ(to_bf16(bits_of(0x00010000)), 0x0001);                   // the smallest, not normal
  EXPECT_TRUE(std::isnan(from_bf16(to_bf16(bits_of(0x7F800001)))));  // not infinity
  EXPECT_TRUE(std::isnan(from_bf16(to_bf16(bits_of(0xFFFFFFFF)))));
}

class ElementwiseVariant : public VariantTest {};

TEST_P(ElementwiseVariant, RoundTripsEveryBfloat16) {
  TestMatrix narrow(1, 0xFF00, Dtype::kBf16), wide(1, 0xFF00), back(1, 0xFF00, Dtype::kBf16);
  auto* values = static_cast<std::uint16_t*>(Vector(narrow).data);
  for (std::int64_t i = 0; i < narrow.size(); ++i) values[i] = static_cast<std::uint16_t>(i);
  run_kernel(kernels().cast, {.x = narrow, .y = wide});
  run_kernel(kernels().cast, {.x = wide, .y = back});
  const auto* result = static_cast<const std::uint16_t*>(Vector(back).data);
  for (std::int64_t i = 0; i < narrow.size(); ++i) {
    if (std::isnan(from_bf16(values[i]))) continue;
    ASSERT_EQ(result[i], values[i]);
  }
}

TEST_P(ElementwiseVariant, CastsLikeTheReferenceAroundTies) {
  TestMatrix wide(1, 4096), actual(1, 4096, Dtype::kBf16), expected(1, 4096, Dtype::kBf16);
  for (std::int64_t i = 0; i < wide.size(); ++i)
    wide.set(i, 1 + static_cast<double>(i) * 0x1p-10);  // every 4th is a tie
  run_kernel(kernels().cast, {.x = wide, .y = actual});
  run_kernel(reference().cast, {.x = wide, .y = expected});
  EXPECT_TRUE(same_bits(actual, expected));
}

TEST_P(ElementwiseVariant, AddsAndScales) {
  for (const std::int64_t columns : {0, 1, 3, 17, 63, 65, 1030}) {
    TestMatrix a(3, columns, dtype(), 2), b(3, columns, dtype(), 1), y(3, columns, dtype(), 3);
    TestMatrix bias(1, columns, dtype()), expected(3, columns, dtype(), 3);
    a.random(1), b.random(2), bias.random(3);
    run_kernel(kernels().add, {.a = a, .b = b, .y = y});
    run_kernel(reference().add, {.a = a, .b = b, .y = expected});
    expect_close(y, expected, 0, "add");
    run_kernel(kernels().add, {.a = a, .b = b, .y = b});  // in place
    EXPECT_TRUE(same_bits(b, y));
    run_kernel(kernels().bias_add, {.x = a, .bias = bias, .y = y});
    run_kernel(reference().bias_add, {.x = a, .bias = bias, .y = expected});
    expect_close(y, expected, 0, "bias");
    run_kernel(kernels().fill, {.y = bias, .value = 0.5F});
    for (std::int64_t i = 0; i < columns; ++i) EXPECT_EQ(bias[i], 0.5);
  }
}

// tanh(1) = 0.761594156; its slope is 1 - tanh(1)^2 = 0.419974342.
TEST(ElementwiseReference, CapsByHand) {
  TestMatrix x(1, 1), y(1, 1), dy(1, 1), dx(1, 1);
  x.set(0, 3), dy.set(0, 2);
  run_kernel(reference_kernels().softcap_forward, {.x = x, .y = y, .cap = 3});
  EXPECT_NEAR(y[0], 3 * 0.761594156, 1e-6);
  run_kernel(reference_kernels().softcap_backward, {.y = y, .dy = dy, .dx = dx, .cap = 3});
  EXPECT_NEAR(dx[0], 2 * 0.419974342, 1e-6);
}

// A few roundings of values up to the cap; slopes up to 1 of gradients up to 1.
TEST_P(ElementwiseVariant, CapsLikeTheReference) {
  TestMatrix x(3, 341, dtype()), dy(3, 341, dtype());
  x.random(1, 60), dy.random(2);
  for (std::int64_t i = 0; i < 30; ++i) x.set(i, x[i] * 0x1p-10);  // small ones, too
  TestMatrix y(3, 341, dtype()), dx(3, 341, dtype()), ey(3, 341, dtype()), edx(3, 341, dtype());
  run_kernel(kernels().softcap_forward, {.x = x, .y = y, .cap = 30});
  run_kernel(reference().softcap_forward, {.x = x, .y = ey, .cap = 30});
  expect_close(y, ey, 32 * 0x1p-24, "y");
  run_kernel(kernels().softcap_backward, {.y = ey, .dy = dy, .dx = dx, .cap = 30});
  run_kernel(reference().softcap_backward, {.y = ey, .dy = dy, .dx = edx, .cap = 30});
  expect_close(dx, edx, 32 * 0x1p-24, "dx");
}

TEST_P(ElementwiseVariant, ReducesIntoABuffer) {
  for (const Reduction reduction : {Reduction::kSum, Reduction::kMaximum})
    for (const Dtype from : {Dtype::kFp32, Dtype::kBf16}) {
      TestMatrix into(1, 1500, dtype()), expected(1, 1500, dtype()), other(1, 1500, from);
      into.random(1), expected.random(1), other.random(2);
      run_kernel(kernels().reduce, {.reduction = reduction, .into = into, .from = other});
      run_kernel(reference().reduce, {.reduction = reduction, .into = expected, .from = other});
      EXPECT_TRUE(same_bits(into, expected));  // one exact sum, rounded once
    }
}

// Multiples of 1/64: column sums are exact in fp32 whatever the order.
TEST_P(ElementwiseVariant, SumsColumnsForBiases) {
  for (const std::int64_t rows : {0, 1, 63, 65, 200}) {
    TestMatrix dy(rows, 530, dtype(), 1), dbias(1, 530);
    dy.random(1), dbias.random(2);
    const TestMatrix before = dbias;
    run_kernel(kernels().bias_gradient, {.dy = dy, .dbias = dbias});
    for (const std::int64_t i : {0, 1, 529}) {
      double sum = before[i];
      for (std::int64_t r = 0; r < rows; ++r) sum += dy(r, i);
      EXPECT_EQ(dbias[i], sum);
    }
  }
  const std::vector<std::int64_t> offsets{0, 4, 4, 9};
  TestMatrix dy(9, 5, dtype()), dbias(3, 5);
  dy.random(1);
  run_kernel(kernels().grouped_bias_gradient, {.dy = dy, .dbias = dbias, .offsets = offsets});
  EXPECT_EQ(dbias(0, 2), dy(0, 2) + dy(1, 2) + dy(2, 2) + dy(3, 2));
  EXPECT_EQ(dbias(1, 2), 0);
  EXPECT_EQ(dbias(2, 4), dy(4, 4) + dy(5, 4) + dy(6, 4) + dy(7, 4) + dy(8, 4));
}

TEST(ElementwiseReference, GradientsEqualFiniteDifferences) {
  TestMatrix x(2, 5), gate(2, 1), dy(2, 5), y(2, 5), dx(2, 5), dgate(2, 1);
  x.random(1), gate.random(2), dy.random(3);
  const KernelTable& kernels = reference_kernels();
  const auto gated = [&] {
    run_kernel(kernels.row_gate_forward, {.x = x, .gate = gate, .y = y});
    return dot(y, dy);
  };
  run_kernel(kernels.row_gate_backward, {.x = x, .gate = gate, .dy = dy, .dx = dx, .dgate = dgate});
  expect_gradient(x, dx, gated, "row gate dx");
  expect_gradient(gate, dgate, gated, "row gate dgate");

  TestMatrix target(2, 5), loss(1, 2), total(1, 1);
  target.random(4);
  run_kernel(kernels.mean_squared_error_gradient,
             {.x = x, .target = target, .scale = 0.5F, .dx = dx});
  expect_gradient(
      x, dx,
      [&] {
        run_kernel(kernels.mean_squared_error_forward, {.x = x, .target = target, .loss = loss});
        run_kernel(kernels.total, {.x = loss, .scale = 0.5F, .total = total.data()});
        return total[0];
      },
      "mean squared error");
}

// Sums of 700 squares up to 4, in 16 lanes: 44 roundings of at most ~900 / 16, then divided by 700.
TEST_P(ElementwiseVariant, GatesAndLossesEqualTheReference) {
  TestMatrix x(5, 700, dtype()), gate(5, 1, dtype()), dy(5, 700, dtype());
  x.random(1), gate.random(2, 4), dy.random(3);
  struct Result {
    TestMatrix y, dx, dgate, loss, gradient;
  };
  const auto run_all = [&](const KernelTable& table) {
    Result r{TestMatrix(5, 700, dtype()), TestMatrix(5, 700, dtype()), TestMatrix(5, 1, dtype()),
             TestMatrix(1, 5), TestMatrix(5, 700, dtype())};
    run_kernel(table.row_gate_forward, {.x = x, .gate = gate, .y = r.y});
    run_kernel(table.row_gate_backward,
               {.x = x, .gate = gate, .dy = dy, .dx = r.dx, .dgate = r.dgate});
    run_kernel(table.mean_squared_error_forward, {.x = x, .target = dy, .loss = r.loss});
    run_kernel(table.mean_squared_error_gradient,
               {.x = x, .target = dy, .scale = 2, .dx = r.gradient});
    return r;
  };
  const Result actual = run_all(kernels()), expected = run_all(reference());
  expect_close(actual.y, expected.y, 8 * 0x1p-24, "y");
  expect_close(actual.dx, expected.dx, 8 * 0x1p-24, "dx");
  expect_close(actual.dgate, expected.dgate, 700 * 0x1p-24, "dgate");
  expect_close(actual.loss, expected.loss, 64 * 0x1p-24, "loss");
  expect_close(actual.gradient, expected.gradient, 8 * 0x1p-24, "gradient");
}

MESHWRIGHT_ALL_VARIANTS(ElementwiseVariant);

}  // namespace
}  // namespace meshwright
