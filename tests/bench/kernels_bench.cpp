/// CPU kernels on one thread, by thread CPU time. Prints the achieved rate, its bound on this
/// machine and achieved / bound. The bound is a loop of fused multiply-adds for GFLOP/s and a plain
/// copy for GB/s (buffers of at least 32 MiB; every byte is read or written once).
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <memory>
#include <vector>

#include "kernels/kernel_table.hpp"

namespace meshwright {
namespace {

// ---- bounds of this machine -----------------------------------------------------------------

double thread_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

template <class Work>
double best_rate(double amount, const Work& work) {
  double best = 0;
  for (int repeat = 0; repeat < 7; ++repeat) {
    const double start = thread_seconds();
    work();
    best = std::max(best, amount / (thread_seconds() - start));
  }
  return best;
}

double copy_bytes_per_second() {
  static const double rate = [] {
    constexpr std::size_t kSize = 64u << 20;
    std::vector<char> from(kSize, 1), to(kSize, 2);
    return best_rate(2.0 * kSize, [&] {
      std::memcpy(to.data(), from.data(), kSize);
      benchmark::DoNotOptimize(to.data());
      benchmark::ClobberMemory();
    });
  }();
  return rate;
}

constexpr std::int64_t kRounds = 10'000'000;

/// Twelve chains of multiply-adds: two units with a latency of up to six cycles. They start with
/// different values, or the compiler would merge them.
template <class Vec>
[[gnu::always_inline]] inline float chains() {
  Vec x{}, y{}, a{}, b{}, c{}, d{}, e{}, f{}, g{}, h{}, i{}, j{}, k{}, l{};
  x += 0.999F, y += 0.001F;
  b += 1, c += 2, d += 3, e += 4, f += 5, g += 6, h += 7, i += 8, j += 9, k += 10, l += 11;
  for (std::int64_t n = 0; n < kRounds; ++n) {
    a = a * x + y, b = b * x + y, c = c * x + y, d = d * x + y, e = e * x + y, f = f * x + y;
    g = g * x + y, h = h * x + y, i = i * x + y, j = j * x + y, k = k * x + y, l = l * x + y;
  }
  const Vec sum = a + b + c + d + e + f + g + h + i + j + k + l;
  float total = 0;
  for (std::size_t lane = 0; lane < sizeof(Vec) / 4; ++lane) total += sum[lane];
  return total;
}

#ifdef __x86_64__
typedef float Vec8 __attribute__((vector_size(32)));
typedef float Vec16 __attribute__((vector_size(64)));
[[gnu::target("avx2,fma")]] float chains_avx2() { return chains<Vec8>(); }
[[gnu::target("avx512f")]] float chains_avx512() { return chains<Vec16>(); }
#endif
typedef float Vec4 __attribute__((vector_size(16)));
float chains_generic() { return chains<Vec4>(); }

double peak_flops_per_second() {
  static const double rate = [] {
    float (*loop)() = chains_generic;
    double width = 4;
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512f"))
      loop = chains_avx512, width = 16;
    else if (__builtin_cpu_supports("fma"))
      loop = chains_avx2, width = 8;
#endif
    return best_rate(2 * 12 * width * static_cast<double>(kRounds),
                     [&] { benchmark::DoNotOptimize(loop()); });
  }();
  return rate;
}

// ---- running a kernel -----------------------------------------------------------------------

const KernelTable& kernels() { return kernel_table(Backend::kCpu); }

/// A matrix with its memory, in [-1, 1).
struct Block {
  Block(std::int64_t rows, std::int64_t columns, Dtype type = Dtype::kFp32)
      : memory(static_cast<std::size_t>(rows * columns * bytes_per_element(type))),
        view(dense_matrix(memory.data(), rows, columns, type)) {
    std::vector<float> values(static_cast<std::size_t>(rows * columns));
    std::uint32_t state = 1;
    for (float& v : values) {
      state = state * 1664525u + 1013904223u;
      v = static_cast<float>(state >> 8) * 0x1p-23F - 1;
    }
    kernels().cast(Launch{}, {.x = {values.data(), rows * columns, Dtype::kFp32}, .y = flat(view)});
  }
  operator ConstMatrix() const { return view; }
  operator Matrix() const { return view; }
  operator ConstVector() const { return flat(view); }
  operator Vector() const { return flat(view); }
  std::span<float> floats() {
    return {reinterpret_cast<float*>(memory.data()), memory.size() / sizeof(float)};
  }
  std::vector<std::byte> memory;
  Matrix view;
};

struct Amount {
  double flops = 0, bytes = 0;
};

template <class Arguments>
void measure(benchmark::State& state, const KernelEntry<Arguments>& kernel,
             const Arguments& arguments, Amount amount) {
  std::vector<std::byte> memory(static_cast<std::size_t>(kernel.scratch_bytes(arguments).value) +
                                64);
  void* scratch = memory.data();
  std::size_t space = memory.size();
  std::align(64, space - 64, scratch, space);
  const Launch launch{nullptr, scratch, Bytes(static_cast<std::int64_t>(space))};
  for (auto _ : state) {
    kernel(launch, arguments);
    benchmark::ClobberMemory();
  }
  using benchmark::Counter;
  const auto rate = [](double amount_per_round) {
    return Counter(amount_per_round, Counter::kIsIterationInvariantRate);
  };
  if (amount.flops > 0) {
    state.counters["achieved_GFLOP"] = rate(amount.flops * 1e-9);
    state.counters["bound_GFLOP/s"] = peak_flops_per_second() * 1e-9;
    state.counters["achieved/bound"] = rate(amount.flops / peak_flops_per_second());
  } else {
    state.counters["achieved_GB"] = rate(amount.bytes * 1e-9);
    state.counters["bound_GB/s"] = copy_bytes_per_second() * 1e-9;
    state.counters["achieved/bound"] = rate(amount.bytes / copy_bytes_per_second());
  }
}

Dtype dtype_of(const benchmark::State& state) {
  return state.range(0) == 0 ? Dtype::kFp32 : Dtype::kBf16;
}
double element(Dtype dtype) { return bytes_per_element(dtype); }

// ---- products -------------------------------------------------------------------------------

/// Arguments: bf16, m, n, k, transpose a, transpose b.
void GemmBench(benchmark::State& state) {
  const Dtype dtype = dtype_of(state);
  const std::int64_t m = state.range(1), n = state.range(2), k = state.range(3);
  const bool ta = state.range(4) != 0, tb = state.range(5) != 0;
  const Block a = ta ? Block(k, m, dtype) : Block(m, k, dtype);
  const Block b = tb ? Block(n, k, dtype) : Block(k, n, dtype);
  const Block c(m, n, ta ? Dtype::kFp32 : dtype);
  const double flops =
      2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  measure(state, kernels().gemm, {.a = a, .transpose_a = ta, .b = b, .transpose_b = tb, .c = c},
          {.flops = flops});
}
void gemm_shapes(benchmark::internal::Benchmark* bench) {
  for (const int bf16 : {0, 1}) {
    for (const int size : {64, 256, 1024, 2048}) bench->Args({bf16, size, size, size, 0, 0});
    bench->Args({bf16, 512, 3072, 768, 0, 0});  // a layer of GPT-2 (124M): forward,
    bench->Args({bf16, 512, 768, 3072, 0, 1});  // input gradient,
    bench->Args({bf16, 768, 3072, 512, 1, 0});  // weight gradient
  }
}
BENCHMARK(GemmBench)->Apply(gemm_shapes);

struct AttentionBlocks {
  AttentionShape shape{.heads = 4,
                       .key_value_heads = 4,
                       .queries = 1024,
                       .keys = 1024,
                       .key_size = 64,
                       .value_size = 64,
                       .scale = 0.125F};
  Block q, k, v, out, dout, lse, delta;
  explicit AttentionBlocks(Dtype dtype)
      : q(1024, 256, dtype),
        k(1024, 256, dtype),
        v(1024, 256, dtype),
        out(1024, 256, dtype),
        dout(1024, 256, dtype),
        lse(4, 1024),
        delta(4, 1024) {}
  /// Causal: half of the scores, two products of 2 D flop for each.
  double forward_flops() const { return 4 * 0.5 * 1024 * 1024 * 4 * 64; }
};
void AttentionForwardBench(benchmark::State& state) {
  AttentionBlocks b(dtype_of(state));
  measure(
      state, kernels().attention_forward,
      {.shape = b.shape, .q = b.q, .k = b.k, .v = b.v, .out = b.out, .log_sum_exp = b.lse.floats()},
      {.flops = b.forward_flops()});
}
BENCHMARK(AttentionForwardBench)->Arg(0)->Arg(1);
void AttentionBackwardBench(benchmark::State& state) {
  AttentionBlocks b(dtype_of(state)), d(dtype_of(state));
  std::fill(b.lse.floats().begin(), b.lse.floats().end(), 8.0F);
  measure(state, kernels().attention_backward,
          {.shape = b.shape,
           .q = b.q,
           .k = b.k,
           .v = b.v,
           .dout = b.dout,
           .log_sum_exp = b.lse.floats(),
           .delta = b.delta.floats(),
           .dq = d.q,
           .dk = d.k,
           .dv = d.v},
          {.flops = 2.5 * b.forward_flops()});
}
BENCHMARK(AttentionBackwardBench)->Arg(0)->Arg(1);

// ---- memory-bound kernels -------------------------------------------------------------------

constexpr std::int64_t kRows = 4096, kColumns = 3072;  // 48 MiB of fp32
constexpr double kElements = static_cast<double>(kRows) * kColumns;

struct NormBlocks {
  Block x, dy, dx, weight, bias, mean, deviation, dweight, dbias;
  explicit NormBlocks(Dtype dtype)
      : x(kRows, kColumns, dtype),
        dy(kRows, kColumns, dtype),
        dx(kRows, kColumns, dtype),
        weight(1, kColumns, dtype),
        bias(1, kColumns, dtype),
        mean(1, kRows),
        deviation(1, kRows),
        dweight(1, kColumns),
        dbias(1, kColumns) {}
};
void LayerNormForward(benchmark::State& state) {
  NormBlocks b(dtype_of(state));
  measure(state, kernels().norm_forward,
          {.x = b.x,
           .weight = b.weight,
           .bias = b.bias,
           .y = b.dx,
           .mean = b.mean.floats(),
           .inverse_deviation = b.deviation.floats()},
          {.bytes = 2 * kElements * element(dtype_of(state))});
}
BENCHMARK(LayerNormForward)->Arg(0)->Arg(1);
void LayerNormBackwardInput(benchmark::State& state) {
  NormBlocks b(dtype_of(state));
  measure(state, kernels().norm_backward_input,
          {.x = b.x,
           .dy = b.dy,
           .weight = b.weight,
           .mean = b.mean.floats(),
           .inverse_deviation = b.deviation.floats(),
           .dx = b.dx},
          {.bytes = 3 * kElements * element(dtype_of(state))});
}
BENCHMARK(LayerNormBackwardInput)->Arg(0)->Arg(1);
void LayerNormBackwardWeight(benchmark::State& state) {
  NormBlocks b(dtype_of(state));
  measure(state, kernels().norm_backward_weight,
          {.x = b.x,
           .dy = b.dy,
           .mean = b.mean.floats(),
           .inverse_deviation = b.deviation.floats(),
           .dweight = b.dweight.floats(),
           .dbias = b.dbias.floats()},
          {.bytes = 2 * kElements * element(dtype_of(state))});
}
BENCHMARK(LayerNormBackwardWeight)->Arg(0)->Arg(1);

void activation(benchmark::State& state, ActivationFunction function) {
  const Dtype dtype = dtype_of(state);
  const Block x(kRows, kColumns, dtype), up(kRows, kColumns, dtype), y(kRows, kColumns, dtype);
  const double operands = function == ActivationFunction::kSwiGlu ? 3 : 2;
  measure(state, kernels().activation_forward, {.function = function, .x = x, .up = up, .y = y},
          {.bytes = operands * kElements * element(dtype)});
}
void GeluTanhForward(benchmark::State& s) { activation(s, ActivationFunction::kGeluTanh); }
BENCHMARK(GeluTanhForward)->Arg(0)->Arg(1);
void GeluErfForward(benchmark::State& s) { activation(s, ActivationFunction::kGeluErf); }
BENCHMARK(GeluErfForward)->Arg(0)->Arg(1);
void SwiGluForward(benchmark::State& s) { activation(s, ActivationFunction::kSwiGlu); }
BENCHMARK(SwiGluForward)->Arg(0)->Arg(1);
void GeluTanhBackward(benchmark::State& state) {
  const Dtype dtype = dtype_of(state);
  const Block x(kRows, kColumns, dtype), dy(kRows, kColumns, dtype), dx(kRows, kColumns, dtype);
  measure(state, kernels().activation_backward, {.x = x, .dy = dy, .dx = dx},
          {.bytes = 3 * kElements * element(dtype)});
}
BENCHMARK(GeluTanhBackward)->Arg(0)->Arg(1);

void ResidualAdd(benchmark::State& state) {
  const Dtype dtype = dtype_of(state);
  const Block a(kRows, kColumns, dtype), b(kRows, kColumns, dtype), y(kRows, kColumns, dtype);
  measure(state, kernels().add, {.a = a, .b = b, .y = y},
          {.bytes = 3 * kElements * element(dtype)});
}
BENCHMARK(ResidualAdd)->Arg(0)->Arg(1);
void BiasGradientBench(benchmark::State& state) {
  const Block dy(kRows, kColumns, dtype_of(state));
  Block dbias(1, kColumns);
  measure(state, kernels().bias_gradient, {.dy = dy, .dbias = dbias.floats()},
          {.bytes = kElements * element(dtype_of(state))});
}
BENCHMARK(BiasGradientBench)->Arg(0)->Arg(1);
void ReduceBench(benchmark::State& state) {
  const Dtype dtype = dtype_of(state);
  const Block into(kRows, kColumns, dtype), from(kRows, kColumns, dtype);
  measure(state, kernels().reduce, {.into = into, .from = from},
          {.bytes = 3 * kElements * element(dtype)});
}
BENCHMARK(ReduceBench)->Arg(0)->Arg(1);
void CastToBfloat16(benchmark::State& state) {
  const Block x(kRows, kColumns), y(kRows, kColumns, Dtype::kBf16);
  measure(state, kernels().cast, {.x = x, .y = y}, {.bytes = 6 * kElements});
}
BENCHMARK(CastToBfloat16);

void CrossEntropyForwardBench(benchmark::State& state) {
  const Dtype dtype = dtype_of(state);
  constexpr std::int64_t kTokens = 256, kWords = 50304;
  const Block logits(kTokens, kWords, dtype);
  Block maximum(1, kTokens), sum(1, kTokens), loss(1, kTokens);
  const std::vector<std::int32_t> targets(kTokens, 7);
  measure(state, kernels().cross_entropy_forward,
          {.shard = {.logits = logits, .tokens = kWords},
           .targets = targets,
           .maximum = maximum.floats(),
           .sum = sum.floats(),
           .loss = loss.floats()},
          {.bytes = static_cast<double>(kTokens * kWords) * element(dtype)});
}
BENCHMARK(CrossEntropyForwardBench)->Arg(0)->Arg(1);

/// fp32: reads gradient, master and moments, writes three; bf16: half a gradient, and a copy.
void AdamWBench(benchmark::State& state) {
  const Dtype dtype = dtype_of(state);
  Block w(kRows, kColumns), m(kRows, kColumns), v(kRows, kColumns);
  const Block g(kRows, kColumns, dtype), copy(kRows, kColumns, Dtype::kBf16);
  std::fill(v.floats().begin(), v.floats().end(), 1.0F);
  AdamW update{
      .master = w.floats(), .first_moment = m.floats(), .second_moment = v.floats(), .gradient = g};
  if (dtype == Dtype::kBf16) update.parameter = copy;
  measure(state, kernels().adamw, update,
          {.bytes = kElements * (24 + element(dtype) + (dtype == Dtype::kBf16 ? 2 : 0))});
}
BENCHMARK(AdamWBench)->Arg(0)->Arg(1);

}  // namespace
}  // namespace meshwright
