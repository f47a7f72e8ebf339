#include "kernels/attention.hpp"

#include "tests/kernels/kernel_case.hpp"

namespace meshwright {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// `heads`: sequences, heads, key-value heads; `lengths`: of queries and keys; `sizes`: of keys and
/// values.
AttentionShape shape_of(std::array<std::int64_t, 3> heads, std::array<std::int64_t, 2> lengths,
                        std::array<std::int64_t, 2> sizes, float scale = 1) {
  return {heads[0], heads[1], heads[2], lengths[0], lengths[1], sizes[0], sizes[1], scale};
}

/// Inputs of one shape and all results.
struct AttentionCase {
  AttentionShape s;
  TestMatrix q, k, v, dout;
  TestMatrix out, log_sum_exp, delta, dq, dk, dv;

  /// Gaps between the rows are multiples of `gap`; those of eight keep rows aligned, which library
  /// kernels require.
  AttentionCase(const AttentionShape& shape, Dtype dtype, std::int64_t gap = 1)
      : s(shape),
        q(s.sequences * s.queries, s.heads * s.key_size, dtype, 3 * gap),
        k(s.sequences * s.keys, s.key_value_heads * s.key_size, dtype, gap),
        v(s.sequences * s.keys, s.key_value_heads * s.value_size, dtype, 2 * gap),
        dout(s.sequences * s.queries, s.heads * s.value_size, dtype),
        out(s.sequences * s.queries, s.heads * s.value_size, dtype, gap),
        log_sum_exp(s.sequences * s.heads, s.queries),
        delta(s.sequences * s.heads, s.queries),
        dq(q.rows(), q.columns(), dtype, 2 * gap),
        dk(k.rows(), k.columns(), dtype, gap),
        dv(v.rows(), v.columns(), dtype, 3 * gap) {
    q.random(1), k.random(2), v.random(3), dout.random(4);
    dq.random(5), dk.random(6), dv.random(7);
  }

  void run_forward(const KernelTable& kernels) {
    run_kernel(kernels.attention_forward,
               {.shape = s, .q = q, .k = k, .v = v, .out = out, .log_sum_exp = log_sum_exp});
  }
  void run_backward(const KernelTable& kernels, bool accumulate = false) {
    run_kernel(kernels.attention_delta, {.shape = s, .out = out, .dout = dout, .delta = delta});
    run_kernel(kernels.attention_backward, {.shape = s,
                                            .q = q,
                                            .k = k,
                                            .v = v,
                                            .dout = dout,
                                            .log_sum_exp = log_sum_exp,
                                            .delta = delta,
                                            .dq = dq,
                                            .dk = dk,
                                            .dv = dv,
                                            .accumulate = accumulate,
                                            .out = out});
  }
  /// `loss` depends on q, k and v; their gradients have been computed.
  void expect_gradients(const std::function<double()>& loss) {
    expect_gradient(q, dq, loss, "dq");
    expect_gradient(k, dk, loss, "dk");
    expect_gradient(v, dv, loss, "dv");
  }
};

// Two keys with scores 0 and ln 3: probabilities 1/4 and 3/4, values 8 and 4, so 5; the sum of
// exponentials is 4.
TEST(AttentionReference, ValuesByHand) {
  AttentionCase c({.queries = 1, .keys = 2, .key_size = 1, .value_size = 1, .causal = false},
                  Dtype::kFp32);
  c.q.set(0, 1), c.k.set(0, 0), c.k.set(1, std::log(3.0)), c.v.set(0, 8), c.v.set(1, 4);
  c.run_forward(reference_kernels());
  EXPECT_NEAR(c.out[0], 5, 1e-6);
  EXPECT_NEAR(c.log_sum_exp[0], std::log(4.0), 1e-6);
}

// Scores 0 and 2 atanh(ln(3) / 2) with a cap of 2 become 0 and ln 3: as above.
TEST(AttentionReference, CapsScores) {
  AttentionCase c(
      {.queries = 1, .keys = 2, .key_size = 1, .value_size = 1, .softcap = 2, .causal = false},
      Dtype::kFp32);
  c.q.set(0, 1), c.k.set(0, 0), c.k.set(1, 2 * std::atanh(std::log(3.0) / 2));
  c.v.set(0, 8), c.v.set(1, 4);
  c.run_forward(reference_kernels());
  EXPECT_NEAR(c.out[0], 5, 1e-6);
}

// Positions 5 and 6 against keys at 4, 5, 6 with a window of 2: (4, 5) and (5, 6). All scores are
// equal, so the result is the mean of the values 1, 2, 4.
TEST(AttentionReference, MasksByPositionAndWindow) {
  AttentionShape s = shape_of({1, 1, 1}, {2, 3}, {1, 1});
  s.window = 2, s.first_query = 5, s.first_key = 4;
  AttentionCase c(s, Dtype::kFp32);
  c.q.fill(0);
  c.v.set(0, 1), c.v.set(1, 2), c.v.set(2, 4);
  c.run_forward(reference_kernels());
  EXPECT_EQ(c.out[0], 1.5);
  EXPECT_EQ(c.out[1], 3);
}

// Positions 5 to 8 against keys at 4 to 8 with chunks of 3: (3, 4, 5) without 3, (6), (6, 7) and
// (6, 7, 8). All scores are equal, so the result is a mean of the values 1, 2, 4, 8, 16.
TEST(AttentionReference, MasksByChunk) {
  AttentionShape s = shape_of({1, 1, 1}, {4, 5}, {1, 1});
  s.chunk = 3, s.first_query = 5, s.first_key = 4;
  AttentionCase c(s, Dtype::kFp32);
  c.q.fill(0);
  for (int i = 0; i < 5; ++i) c.v.set(i, 1 << i);
  c.run_forward(reference_kernels());
  EXPECT_EQ(c.out[0], 1.5);
  EXPECT_EQ(c.out[1], 4);
  EXPECT_EQ(c.out[2], 6);
  EXPECT_NEAR(c.out[3], 28. / 3, 1e-6);
}

// Two keys with scores 0 and a sink of ln 2: probabilities 1/4 each of values 8 and 4, and 1/2 of
// nothing. The sums of exponentials without and with the sink are 2 and 4.
TEST(AttentionReference, IncludesSinksInTheSoftmax) {
  AttentionCase c({.queries = 1, .keys = 2, .key_size = 1, .value_size = 1, .causal = false},
                  Dtype::kFp32);
  c.q.fill(0), c.v.set(0, 8), c.v.set(1, 4);
  c.run_forward(reference_kernels());
  TestMatrix sinks(1, 1);
  sinks.set(0, std::log(2.0));
  run_kernel(reference_kernels().attention_sinks,
             {.shape = c.s, .sinks = sinks, .out = c.out, .log_sum_exp = c.log_sum_exp});
  EXPECT_NEAR(c.out[0], 3, 1e-6);
  EXPECT_NEAR(c.log_sum_exp[0], std::log(4.0), 1e-6);
}

TEST(AttentionReference, GradientsWithDropoutAndSinksEqualFiniteDifferences) {
  AttentionShape s = shape_of({2, 2, 1}, {3, 4}, {2, 3}, 0.7F);
  s.first_query = 1;
  s.dropout = {.mask = {.probability = 0.4F, .key = 5}, .length = 8, .first_head = 1, .heads = 4};
  AttentionCase c(s, Dtype::kFp32);
  TestMatrix sinks(1, 2), dsinks(1, 2);
  sinks.random(9);
  const auto run_forward = [&] {
    c.run_forward(reference_kernels());
    run_kernel(reference_kernels().attention_sinks,
               {.shape = s, .sinks = sinks, .out = c.out, .log_sum_exp = c.log_sum_exp});
  };
  run_forward();
  c.run_backward(reference_kernels());
  run_kernel(reference_kernels().attention_sinks_gradient, {.shape = s,
                                                            .sinks = sinks,
                                                            .log_sum_exp = c.log_sum_exp,
                                                            .delta = c.delta,
                                                            .dsinks = dsinks});
  const auto loss = [&] {
    run_forward();
    return dot(c.out, c.dout);
  };
  c.expect_gradients(loss);
  expect_gradient(sinks, dsinks, loss, "dsinks");
}

TEST(AttentionReference, GradientsEqualFiniteDifferences) {
  AttentionShape windowed = shape_of({1, 1, 1}, {2, 4}, {3, 1}, 0.5F);
  windowed.window = 2, windowed.first_query = 2;
  AttentionShape chunked = windowed;
  chunked.window = 0, chunked.chunk = 3;
  AttentionShape capped = shape_of({1, 2, 1}, {3, 3}, {2, 3}, 0.7F);
  capped.softcap = 0.6F;
  for (const AttentionShape& s :
       {shape_of({1, 2, 1}, {3, 3}, {2, 3}, 0.7F), windowed, chunked, capped}) {
    AttentionCase c(s, Dtype::kFp32);
    c.run_forward(reference_kernels());
    c.run_backward(reference_kernels());
    c.expect_gradients([&] {
      c.run_forward(reference_kernels());
      return dot(c.out, c.dout);
    });
  }
}

std::vector<AttentionShape> attention_shapes() {
  std::vector<AttentionShape> shapes;
  for (const std::int64_t length : {0, 1, 3, 17, 63, 65, 131, 260})
    for (const bool causal : {true, false}) {
      shapes.push_back(shape_of({length < 64 ? 2 : 1, 2, 2}, {length, length}, {16, 16}, 0.25F));
      shapes.back().causal = causal;
    }
  // Grouped-query heads; keys and values of different, odd sizes; queries after the keys.
  shapes.push_back(shape_of({2, 6, 2}, {50, 50}, {24, 16}, 0.2F));
  shapes.push_back(shape_of({1, 3, 1}, {49, 140}, {7, 13}, 0.3F));
  shapes.back().first_query = 91;
  // Heads as wide as those of large models.
  shapes.push_back(shape_of({1, 2, 1}, {70, 70}, {128, 120}, 0.09F));
  // Windows that mask whole tiles; blocks of a ring that are partly or fully masked.
  shapes.push_back({.queries = 300, .keys = 300, .key_size = 8, .value_size = 8, .window = 20});
  shapes.push_back({.queries = 60, .keys = 60, .key_size = 8, .value_size = 8, .first_key = 30});
  shapes.push_back({.queries = 20, .keys = 20, .key_size = 8, .value_size = 8, .first_key = 20});
  // Chunks that divide tiles, that hold several, and that begin inside a block of a ring.
  for (const std::int64_t chunk : {20, 150})
    shapes.push_back({.queries = 300, .keys = 300, .key_size = 8, .value_size = 8, .chunk = chunk});
  shapes.push_back({.queries = 60,
                    .keys = 60,
                    .key_size = 8,
                    .value_size = 8,
                    .chunk = 50,
                    .first_query = 70,
                    .first_key = 30});
  // Dropout with a subset of the heads and keys that do not start at 0.
  AttentionShape dropped = shape_of({2, 4, 2}, {70, 150}, {8, 16}, 0.3F);
  dropped.window = 120, dropped.first_query = 130, dropped.first_key = 20;
  dropped.dropout = {.mask = {.probability = 0.3F, .key = 77},
                     .first_sequence = 3,
                     .length = 512,
                     .first_head = 2,
                     .heads = 8};
  shapes.push_back(dropped);
  // Capped scores.
  shapes.push_back(shape_of({2, 4, 2}, {70, 70}, {8, 16}, 1));
  shapes.back().softcap = 1.5F;
  shapes.push_back({.queries = 20, .keys = 0, .key_size = 8, .value_size = 8, .causal = false});
  return shapes;
}

class AttentionVariant : public VariantTest {};

// Scores are sums of D terms of size <= scale, at most 4 here, so they lose D 2^-24 * 4; e^score is
// off by as much relatively, and so is a mean of values of size one. Gradients sum up to Tq such
// terms of size <= 2, where each probability is ~1/Tk: 32 roundings of size one cover both.
TEST_P(AttentionVariant, EqualsTheReference) {
  for (const AttentionShape& s : attention_shapes())
    for (const auto& [accumulate, gap] : {std::pair{false, 1}, {false, 8}, {true, 1}}) {
      if (is_emulated() && ((s.queries > 131 && s.window + s.chunk == 0) || gap == 8))
        continue;  // takes too long there
      AttentionCase actual(s, dtype(), gap), expected(s, dtype(), gap);
      actual.run_forward(kernels());
      expected.run_forward(reference());
      const std::string what = "Tq " + std::to_string(s.queries) + " Tk " + std::to_string(s.keys) +
                               " heads " + std::to_string(s.heads) + (s.causal ? " causal" : "") +
                               (gap == 8 ? " aligned" : "");
      const double error = 32 * 0x1p-24;
      // On tensor cores P and dS are rounded to bf16: each by 2^-9 of itself at most. P sums to
      // one, so `out` is off by 2^-9; gradients sum such errors of either sign, of terms that are
      // up to 4 scale times P: three times that is where they stay.
      const bool rounds = is_cuda() && dtype() == Dtype::kBf16;
      const double dv_error = rounds ? 0x1p-7 : 2 * error;
      const double slope_error =
          rounds ? 0x1p-7 * std::max(1.0, 4.0 * static_cast<double>(s.scale)) : 2 * error;
      expect_close(actual.out, expected.out, rounds ? 0x1p-9 : error, what + " out");
      expect_close(actual.log_sum_exp, expected.log_sum_exp, error, what + " log_sum_exp");
      // The backward pass of both starts from the same results.
      actual.out = expected.out, actual.log_sum_exp = expected.log_sum_exp;
      actual.run_backward(kernels(), accumulate);
      expected.run_backward(reference(), accumulate);
      expect_close(actual.delta, expected.delta, error, what + " delta");
      expect_close(actual.dq, expected.dq, slope_error, what + " dq");
      expect_close(actual.dk, expected.dk, slope_error, what + " dk");
      expect_close(actual.dv, expected.dv, dv_error, what + " dv");
    }
}

// Long enough for several blocks of threads to add to the same gradients.
TEST_P(AttentionVariant, GivesTheSameBitsInEveryRun) {
  const std::int64_t length = is_emulated() ? 70 : 512;  // takes too long there
  const AttentionShape s = shape_of({2, 4, 2}, {length, length}, {64, 64}, 0.125F);
  AttentionCase first(s, dtype(), 8);
  first.run_forward(kernels());
  first.run_backward(kernels());
  for (int run = 0; run < 3; ++run) {
    AttentionCase again(s, dtype(), 8);
    again.run_forward(kernels());
    again.run_backward(kernels());
    EXPECT_TRUE(same_bits(again.out, first.out) && same_bits(again.dq, first.dq) &&
                same_bits(again.dk, first.dk) && same_bits(again.dv, first.dv));
  }
}

TEST_P(AttentionVariant, SinksEqualTheReference) {
  for (const std::int64_t queries : {1, 33}) {
    const AttentionShape s{.sequences = 2,
                           .heads = 3,
                           .key_value_heads = 3,
                           .queries = queries,
                           .keys = queries,
                           .key_size = 8,
                           .value_size = 20,
                           .scale = 0.3F};
    AttentionCase expected(s, dtype());
    expected.run_forward(reference());
    AttentionCase actual = expected;
    TestMatrix sinks(1, 3, dtype()), dsinks(1, 3), expected_dsinks(1, 3);
    sinks.random(8), dsinks.random(2), expected_dsinks.random(2);
    const double error = 32 * 0x1p-24;  // as above
    for (AttentionCase* c : {&actual, &expected})
      run_kernel((c == &actual ? kernels() : reference()).attention_sinks,
                 {.shape = s, .sinks = sinks, .out = c->out, .log_sum_exp = c->log_sum_exp});
    expect_close(actual.out, expected.out, error, "out");
    expect_close(actual.log_sum_exp, expected.log_sum_exp, error, "log_sum_exp");
    expected.delta.random(6);
    const auto gradient = [&](const KernelTable& table, TestMatrix& into) {
      run_kernel(table.attention_sinks_gradient, {.shape = s,
                                                  .sinks = sinks,
                                                  .log_sum_exp = expected.log_sum_exp,
                                                  .delta = expected.delta,
                                                  .dsinks = into});
    };
    gradient(kernels(), dsinks);
    gradient(reference(), expected_dsinks);
    // 66 products of size one at most, each off by a few roundings.
    expect_close(dsinks, expected_dsinks, 66 * 8 * 0x1p-24, "dsinks");
  }
}

// Ring attention: queries [40, 80) against three blocks of keys, one of which is in the future.
// Merged results and summed gradients equal those of all keys at once.
TEST_P(AttentionVariant, MergedBlocksGiveTheFullResult) {
  AttentionShape s = shape_of({1, 2, 1}, {40, 120}, {8, 6}, 0.5F);
  s.first_query = 40;
  AttentionCase whole(s, Dtype::kFp32);
  whole.run_forward(reference());
  whole.run_backward(reference());

  TestMatrix out(40, 12), log_sum_exp(2, 40);
  log_sum_exp.fill(-kInfinity);
  const auto block_at = [&](std::int64_t first) {
    AttentionShape part = s;
    part.keys = 40, part.first_key = first;
    AttentionCase c(part, Dtype::kFp32);
    c.q = whole.q, c.dout = whole.dout;
    for (std::int64_t r = 0; r < 40; ++r) {
      for (std::int64_t i = 0; i < 8; ++i) c.k.set(r, i, whole.k(first + r, i));
      for (std::int64_t i = 0; i < 6; ++i) c.v.set(r, i, whole.v(first + r, i));
    }
    return c;
  };
  for (const std::int64_t first : {40, 80, 0}) {
    AttentionCase c = block_at(first);
    c.run_forward(kernels());
    run_kernel(kernels().attention_merge, {.shape = s,
                                           .out = out,
                                           .log_sum_exp = log_sum_exp,
                                           .block = c.out,
                                           .block_log_sum_exp = c.log_sum_exp});
  }
  const double error = 64 * 0x1p-24;  // as above, and three merges
  expect_close(out, whole.out, error, "out");
  expect_close(log_sum_exp, whole.log_sum_exp, error, "log_sum_exp");

  TestMatrix dq(40, 16);
  for (const std::int64_t first : {0, 40, 80}) {
    AttentionCase c = block_at(first);
    c.out = whole.out, c.log_sum_exp = log_sum_exp;
    c.dq = dq, c.dk.fill(0), c.dv.fill(0);
    c.run_backward(kernels(), true);
    dq = c.dq;
    for (std::int64_t r = 0; r < 40; ++r)
      for (std::int64_t i = 0; i < 8; ++i)
        EXPECT_NEAR(c.dk(r, i), whole.dk(first + r, i), 2 * error) << first << " " << r;
  }
  expect_close(dq, whole.dq, 2 * error, "dq");
}

MESHWRIGHT_ALL_VARIANTS(AttentionVariant);

}  // namespace
}  // namespace meshwright
