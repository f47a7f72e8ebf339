// The gate (kernels/moe_gate.hpp) and the permutation of rows (kernels/permute.hpp).
#include "kernels/moe_gate.hpp"
#include "kernels/permute.hpp"
#include "tests/kernels/kernel_case.hpp"

namespace meshwright {
namespace {

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

struct GateCase {
  GateShape s;
  TestMatrix logits, correction, scores, weights, dweights, choices, shares, dlogits;
  std::vector<std::int32_t> experts;
  float coefficient = 0.5F;

  explicit GateCase(const GateShape& shape)
      : s(shape),
        logits(s.tokens, s.experts),
        correction(1, s.experts),
        scores(s.tokens, s.experts),
        weights(s.tokens, s.experts_per_token),
        dweights(s.tokens, s.experts_per_token),
        choices(1, s.experts),
        shares(1, s.experts),
        dlogits(s.tokens, s.experts),
        experts(index(s.tokens * s.experts_per_token)) {
    logits.random(1, 3), dweights.random(2), correction.random(3, 0.1);
  }
  float share_scale() const {
    const auto tokens = static_cast<float>(s.tokens);
    return coefficient * static_cast<float>(s.experts) /
           (static_cast<float>(s.experts_per_token) * tokens * tokens);
  }
  void run_forward(const KernelTable& kernels) {
    run_kernel(kernels.gate_forward, {.shape = s,
                                      .logits = logits,
                                      .correction = correction,
                                      .scores = scores,
                                      .experts = experts,
                                      .weights = weights});
    run_kernel(
        kernels.gate_load,
        {.shape = s, .scores = scores, .experts = experts, .choices = choices, .shares = shares});
  }
  double auxiliary_loss(const KernelTable& kernels) {
    TestMatrix loss(1, 1);
    run_kernel(kernels.gate_auxiliary_loss, {.shape = s,
                                             .choices = choices,
                                             .shares = shares,
                                             .coefficient = coefficient,
                                             .loss = loss.data()});
    return loss[0];
  }
  void run_backward(const KernelTable& kernels) {
    run_kernel(kernels.gate_backward, {.shape = s,
                                       .scores = scores,
                                       .experts = experts,
                                       .dweights = dweights,
                                       .choices = choices,
                                       .share_scale = share_scale(),
                                       .dlogits = dlogits});
  }
};

// Logits 0, ln 2, ln 4, ln 2: softmax 1/9, 2/9, 4/9, 2/9. The best two are 2 and, of the equal 1
// and 3, the smaller: weights 2/3 and 1/3. Auxiliary loss 0.5 * 4 * (f . P) with f = (0, 1/2, 1/2,
// 0): 2 * (1/9 + 2/9) = 2/3.
TEST(GateReference, ChoosesByHand) {
  GateCase c({.tokens = 1, .experts = 4, .experts_per_token = 2});
  c.correction.fill(0);
  c.logits.set(0, 0), c.logits.set(1, std::log(2.0));
  c.logits.set(2, std::log(4.0)), c.logits.set(3, std::log(2.0));
  c.run_forward(reference_kernels());
  EXPECT_EQ(c.experts, (std::vector<std::int32_t>{2, 1}));
  EXPECT_NEAR(c.weights[0], 2.0 / 3, 1e-6);
  EXPECT_NEAR(c.weights[1], 1.0 / 3, 1e-6);
  EXPECT_NEAR(c.auxiliary_loss(reference_kernels()), 2.0 / 3, 1e-6);
  c.correction.set(0, 1);  // the choice changes, the weights do not know the correction
  c.run_forward(reference_kernels());
  EXPECT_EQ(c.experts, (std::vector<std::int32_t>{0, 2}));
  EXPECT_NEAR(c.weights[0], 0.2, 1e-6);
}

// Six experts on three nodes, two of which a token may reach, three experts per token: two of a
// node count. Sums 0.9 + 0.0 (node 0), 0.5 + 0.5 (node 1), 0.6 + 0.35 (node 2): nodes 1 and 2, of
// which the best three are 4 (0.6), 2 and 3, although expert 0 beats all.
TEST(GateReference, LimitsTheNumberOfNodes) {
  GateCase c({.score = RouterScore::kSigmoid,
              .tokens = 1,
              .experts = 6,
              .experts_per_token = 3,
              .groups = 3,
              .chosen_groups = 2});
  c.correction.fill(0);
  c.logits.fill(0);  // sigmoid(0) = 1/2 everywhere: the correction sets the keys
  int expert = 0;
  for (const double key : {0.9, 0.0, 0.5, 0.5, 0.6, 0.35}) c.correction.set(expert++, key - 0.5);
  c.run_forward(reference_kernels());
  EXPECT_EQ(c.experts, (std::vector<std::int32_t>{4, 2, 3}));
}

// The same keys with one key per group: 0.9 (group 0), 0.5 (group 1), 0.6 (group 2), so groups 0
// and 2, of which the best three are 0, 4 and 5.
TEST(GateReference, ChoosesGroupsByTheirBestKeys) {
  GateCase c({.score = RouterScore::kSigmoid,
              .tokens = 1,
              .experts = 6,
              .experts_per_token = 3,
              .groups = 3,
              .chosen_groups = 2,
              .keys_per_group = 1});
  c.correction.fill(0);
  c.logits.fill(0);
  int expert = 0;
  for (const double key : {0.9, 0.0, 0.5, 0.5, 0.6, 0.35}) c.correction.set(expert++, key - 0.5);
  c.run_forward(reference_kernels());
  EXPECT_EQ(c.experts, (std::vector<std::int32_t>{0, 4, 5}));
}

std::vector<GateShape> gate_shapes(std::int64_t tokens) {
  std::vector<GateShape> shapes;
  for (const RouterScore score : {RouterScore::kSoftmax, RouterScore::kSigmoid})
    for (const bool normalized : {true, false})
      for (const std::int64_t k : {1, 2, 5})
        shapes.push_back({.score = score,
                          .tokens = tokens,
                          .experts = 5,
                          .experts_per_token = k,
                          .normalized = normalized,
                          .scale = 1.5F});
  return shapes;
}

// The choice is piecewise constant: logits are moved so little that it stays (checked).
TEST(GateReference, GradientsEqualFiniteDifferences) {
  for (const GateShape& s : gate_shapes(3)) {
    GateCase c(s);
    c.correction.fill(0);
    for (std::int64_t i = 0; i < c.logits.size(); ++i)
      c.logits.set(i,
                   0.25 * static_cast<double>(i * 7 % 5) - 0.5 + 0.015625 * static_cast<double>(i));
    c.run_forward(reference_kernels());
    c.run_backward(reference_kernels());
    const std::vector<std::int32_t> chosen = c.experts;
    expect_gradient(
        c.logits, c.dlogits,
        [&] {
          c.run_forward(reference_kernels());
          EXPECT_EQ(c.experts, chosen);
          return dot(c.weights, c.dweights) + c.auxiliary_loss(reference_kernels());
        },
        "dlogits");
  }
}

class ExpertsVariant : public VariantTest {};

// Softmax over E experts: E / 16 lanes' roundings, a division and an exponential, all relative.
// Unnormalized sigmoid sums of 64 experts are up to 64, over 65 tokens: shares up to 65.
TEST_P(ExpertsVariant, GateEqualsTheReference) {
  std::vector<GateShape> shapes = gate_shapes(65);
  shapes.push_back({.score = RouterScore::kSigmoid,
                    .tokens = 17,
                    .experts = 63,
                    .experts_per_token = 8,
                    .scale = 2.5F});
  shapes.push_back({.tokens = 33, .experts = 130, .experts_per_token = 6, .normalized = false});
  shapes.push_back({.tokens = 0, .experts = 4, .experts_per_token = 2});
  shapes.push_back(
      {.tokens = 33, .experts = 12, .experts_per_token = 4, .groups = 4, .chosen_groups = 2});
  shapes.push_back({.tokens = 33,
                    .experts = 12,
                    .experts_per_token = 4,
                    .groups = 4,
                    .chosen_groups = 2,
                    .keys_per_group = 1});
  for (const GateShape& s : shapes) {
    GateCase actual(s), expected(s);
    actual.run_forward(kernels());
    expected.run_forward(reference());
    EXPECT_EQ(actual.experts, expected.experts);
    const double error = 32 * 0x1p-24;
    expect_close(actual.scores, expected.scores, error, "scores");
    expect_close(actual.weights, expected.weights, error, "weights");
    expect_close(actual.choices, expected.choices, 0, "choices");
    expect_close(actual.shares, expected.shares, 65 * error, "shares");
    actual.run_backward(kernels());
    expected.run_backward(reference());
    expect_close(actual.dlogits, expected.dlogits, 8 * error, "dlogits");
  }
}

TEST_P(ExpertsVariant, SortsSlotsByExpertAndKeepsTheirOrder) {
  for (const std::int64_t slots : {0, 1, 17, 400}) {
    std::vector<std::int32_t> experts, slot_of_row(index(slots)), row_of_slot(index(slots));
    std::vector<std::int32_t> counts(7);
    for (std::int64_t i = 0; i < slots; ++i)
      experts.push_back(static_cast<std::int32_t>(i * i % 11 % 6));  // 6 is never chosen
    run_kernel(kernels().sort_by_expert, {.experts = experts,
                                          .slot_of_row = slot_of_row,
                                          .row_of_slot = row_of_slot,
                                          .counts = counts});
    std::int64_t row = 0;
    for (std::int32_t e = 0; e < 7; ++e) {  // brute force: collect expert by expert
      std::int32_t count = 0;
      for (std::int64_t slot = 0; slot < slots; ++slot) {
        if (experts[index(slot)] != e) continue;
        ASSERT_EQ(slot_of_row[index(row)], slot);
        ASSERT_EQ(row_of_slot[index(slot)], row);
        ++row, ++count;
      }
      EXPECT_EQ(counts[index(e)], count);
    }
  }
}

/// 9 tokens, 2 choices each, 20 columns; the last token's second choice was dropped.
struct PermuteCase {
  std::vector<std::int32_t> slot_of_row, row_of_slot;
  TestMatrix x, rows, weights;
  explicit PermuteCase(Dtype dtype) : x(9, 620, dtype, 2), rows(17, 620, dtype, 1), weights(9, 2) {
    for (std::int32_t r = 0; r < 17; ++r) slot_of_row.push_back(r * 5 % 17);
    row_of_slot.assign(18, -1);
    for (std::int32_t r = 0; r < 17; ++r) row_of_slot[index(slot_of_row[index(r)])] = r;
    x.random(1), rows.random(2), weights.random(3);
  }
};

TEST_P(ExpertsVariant, GathersAndCombinesRows) {
  PermuteCase c(dtype());
  TestMatrix gathered(17, 620, dtype()), combined(9, 620, dtype());
  run_kernel(kernels().gather_rows,
             {.x = c.x, .index = c.slot_of_row, .copies = 2, .scales = c.weights, .y = gathered});
  run_kernel(
      kernels().combine_rows,
      {.x = c.rows, .index = c.row_of_slot, .copies = 2, .weights = c.weights, .y = combined});
  TestMatrix expected_rows(17, 620, dtype()), expected(9, 620, dtype());
  for (std::int64_t i = 0; i < 620; ++i) {
    for (std::int64_t r = 0; r < 17; ++r) {
      const std::int32_t slot = c.slot_of_row[index(r)];
      expected_rows.set(r, i, c.weights[slot] * c.x(slot / 2, i));
    }
    for (std::int64_t n = 0; n < 9; ++n) {
      double sum = c.weights[2 * n] * c.rows(c.row_of_slot[index(2 * n)], i);
      const std::int32_t second = c.row_of_slot[index(2 * n + 1)];
      if (second >= 0) sum += c.weights[2 * n + 1] * c.rows(second, i);
      expected.set(n, i, sum);
    }
  }
  expect_close(gathered, expected_rows, 0, "gathered");
  expect_close(combined, expected, 4 * 0x1p-24, "combined");
}

TEST_P(ExpertsVariant, FillsRowsWithoutASlotWithZeros) {
  TestMatrix x(2, 600, dtype()), y(3, 600, dtype(), 1), scales(2, 1);
  x.random(1), scales.fill(2), y.random(2);
  const std::vector<std::int32_t> slots{1, -1, 0};
  run_kernel(kernels().gather_rows,
             {.x = x, .index = slots, .copies = 1, .scales = scales, .y = y});
  for (std::int64_t i = 0; i < 600; ++i) {
    EXPECT_EQ(y(0, i), 2 * x(1, i));
    EXPECT_EQ(y(1, i), 0);
    EXPECT_EQ(y(2, i), 2 * x(0, i));
  }
}

// combine is linear in its rows: <combine(rows), dy> = <rows, gather(dy)>, and its derivative in
// the weights is CombineWeightGradient: sum of w dw is the same number once more.
TEST_P(ExpertsVariant, GradientsAreTheTransposes) {
  PermuteCase c(Dtype::kFp32);
  TestMatrix dy(9, 620), drows(17, 620), y(9, 620), dweights(9, 2);
  dy.random(4);
  run_kernel(kernels().combine_rows,
             {.x = c.rows, .index = c.row_of_slot, .copies = 2, .weights = c.weights, .y = y});
  run_kernel(kernels().gather_rows,
             {.x = dy, .index = c.slot_of_row, .copies = 2, .scales = c.weights, .y = drows});
  run_kernel(kernels().combine_weight_gradient,
             {.dy = dy, .x = c.rows, .index = c.row_of_slot, .copies = 2, .dweights = dweights});
  // 5580 products of size <= 1, exact but for the rounding of each y: 2^-24 * 5580.
  EXPECT_NEAR(dot(y, dy), dot(c.rows, drows), 5580 * 0x1p-24);
  EXPECT_NEAR(dot(y, dy), dot(c.weights, dweights), 2 * 5580 * 0x1p-24);
  EXPECT_EQ(dweights(8, 1), 0);  // dropped
}

MESHWRIGHT_ALL_VARIANTS(ExpertsVariant);

}  // namespace
}  // namespace meshwright
