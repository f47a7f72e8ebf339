/// Achieved and bound of the CUDA kernels on this GPU. Bound of memory-bound kernels: bytes/s of a
/// plain copy on the same device (each input read once, each output written once); of GEMM: the
/// fastest algorithm of cuBLASLt; of attention and grouped GEMM: the fastest GEMM. Times are
/// medians of ten rounds, by events, on random data in buffers larger than the L2 cache.
///
///   gpu_report [--quick] [-o results.json] [--csv kernels.csv]      prints a Markdown table
///
/// The CSV is the input of `meshwright fit` (simulator/fit/measured_kernels.hpp).
///
/// Exits with 4 if no device can be used.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "kernels/bfloat16.hpp"
#include "kernels/device/backend_plugin.hpp"

namespace meshwright {
namespace {

const PluginExports& cuda() { return *backend_plugin(Backend::kCuda).exports; }

// ---- memory with random contents ------------------------------------------------------------

/// Random numbers in [-1, 1] with a fixed seed.
class Randomness {
 public:
  float next() {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;  // Knuth, MMIX
    return static_cast<float>(static_cast<std::int64_t>(state_ >> 40) - (1 << 23)) * 0x1p-23F;
  }
  std::int32_t below(std::int64_t limit) {
    next();
    return static_cast<std::int32_t>(static_cast<std::int64_t>(state_ >> 33) % limit);
  }

 private:
  std::uint64_t state_ = 1;
};
Randomness& randomness() {
  static Randomness shared;
  return shared;
}

class Memory {
 public:
  explicit Memory(std::int64_t bytes) : bytes_(bytes) {
    data_ = allocated_on(cuda().device, Bytes(bytes), nullptr);
  }
  Memory(Memory&& other) noexcept {
    std::swap(data_, other.data_), std::swap(bytes_, other.bytes_);
  }
  Memory& operator=(Memory&&) = delete;
  ~Memory() { cuda().device.release(data_, nullptr); }
  void* data() const { return data_; }
  /// Fills the memory with repeated copies of one piece.
  template <class T>
  Memory&& filled_with(const std::vector<T>& piece) && {
    const auto size = static_cast<std::int64_t>(piece.size() * sizeof(T));
    for (std::int64_t at = 0; at < bytes_; at += size)
      cuda().device.copy(static_cast<std::byte*>(data_) + at, piece.data(),
                         Bytes(std::min(size, bytes_ - at)), nullptr);
    cuda().device.wait_for_stream(nullptr);
    return std::move(*this);
  }

 private:
  void* data_ = nullptr;
  std::int64_t bytes_ = 0;
};

constexpr std::size_t kPiece = 1'000'003;  // prime, so that rows differ

template <class T, class Make>
std::vector<T> piece_of(Make make) {
  std::vector<T> piece(kPiece);
  for (T& x : piece) x = make();
  return piece;
}
const std::vector<float>& random_floats() {
  static const auto piece = piece_of<float>([] { return randomness().next(); });
  return piece;
}
const std::vector<std::uint16_t>& random_bf16() {
  static const auto piece = piece_of<std::uint16_t>([] { return to_bf16(randomness().next()); });
  return piece;
}

struct Tensor {
  Memory memory;
  std::int64_t rows, columns;
  Dtype dtype;
  Tensor(std::int64_t r, std::int64_t c, Dtype type = Dtype::kBf16)
      : memory(type == Dtype::kBf16 ? Memory(2 * r * c).filled_with(random_bf16())
                                    : Memory(4 * r * c).filled_with(random_floats())),
        rows(r),
        columns(c),
        dtype(type) {}
  operator Matrix() const { return dense_matrix(memory.data(), rows, columns, dtype); }
  operator ConstMatrix() const { return Matrix(*this); }
  operator Vector() const { return {memory.data(), rows * columns, dtype}; }
  operator ConstVector() const { return Vector(*this); }
  operator std::span<float>() const {
    return {static_cast<float*>(memory.data()), static_cast<std::size_t>(rows * columns)};
  }
  operator std::span<const float>() const { return std::span<float>(*this); }
  float* one() const { return static_cast<float*>(memory.data()); }
};

struct Numbers {
  Memory memory;
  std::size_t size;
  Numbers(std::int64_t count, std::int64_t limit)
      : memory(Memory(4 * count).filled_with(
            piece_of<std::int32_t>([limit] { return randomness().below(limit); }))),
        size(static_cast<std::size_t>(count)) {}
  explicit Numbers(const std::vector<std::int32_t>& values)
      : memory(Memory(4 * static_cast<std::int64_t>(values.size())).filled_with(values)),
        size(values.size()) {}
  operator std::span<std::int32_t>() const {
    return {static_cast<std::int32_t*>(memory.data()), size};
  }
  operator std::span<const std::int32_t>() const { return std::span<std::int32_t>(*this); }
};

// ---- timing -----------------------------------------------------------------------------------

int rounds = 10;

Seconds median_time(const std::function<void()>& work, int repeats) {
  const DeviceTable& device = cuda().device;
  static auto* gate = static_cast<std::uint32_t*>(device.allocate_host(Bytes(4)));
  void* first = device.create_event();
  void* last = device.create_event();
  for (int i = 0; i < 3; ++i) work();
  std::vector<double> times;
  for (int round = 0; round < rounds; ++round) {
    std::atomic_ref(*gate).store(0);
    device.hold(gate, Seconds(3e-3), nullptr);  // until everything is enqueued
    device.record(first, nullptr);
    for (int i = 0; i < repeats; ++i) work();
    device.record(last, nullptr);
    std::atomic_ref(*gate).store(1);
    device.wait_for_event(last);
    times.push_back(device.elapsed(first, last).value / repeats);
  }
  device.destroy_event(first);
  device.destroy_event(last);
  std::nth_element(times.begin(), times.begin() + rounds / 2, times.end());
  return Seconds(times[static_cast<std::size_t>(rounds / 2)]);
}

template <class Arguments>
Seconds time_of(const KernelEntry<Arguments>& kernel, const Arguments& arguments, int repeats = 5) {
  const Bytes size = kernel.scratch_bytes(arguments);
  const Memory scratch(size.value);
  return median_time([&] { kernel({nullptr, scratch.data(), size}, arguments); }, repeats);
}

// ---- the report -------------------------------------------------------------------------------

struct Row {
  std::string what;
  double microseconds, achieved, bound;
  std::string unit;
  std::string op = {};                             ///< as in the CSV; empty: not written there
  std::map<std::string, std::int64_t> sizes = {};  ///< by column of the CSV
};
std::vector<Row> rows;

/// Names the last row for the CSV.
void name_for_csv(std::string op, std::map<std::string, std::int64_t> sizes) {
  rows.back().op = std::move(op);
  rows.back().sizes = std::move(sizes);
}

double copy_rate = 0;     ///< bytes/s, read and written
double product_rate = 0;  ///< flop/s of the largest product

void add(const std::string& what, Seconds time, double amount, double bound,
         const std::string& unit) {
  rows.push_back({what, 1e6 * time.value, amount / time.value, bound, unit});
  const Row& r = rows.back();
  const double scale = unit == "B/s" ? 1e-9 : 1e-12;
  fmt::print("| {} | {:.1f} | {:.1f} | {:.1f} | {:.0f} % |\n", what, r.microseconds,
             scale * r.achieved, scale * bound, 100 * r.achieved / bound);
  std::fflush(stdout);
}
template <class Arguments>
void stream_row(const std::string& what, const KernelEntry<Arguments>& kernel,
                const Arguments& arguments, double bytes) {
  add(what, time_of(kernel, arguments), bytes, copy_rate, "B/s");
}

/// tokens x hidden of bf16 are 128 MiB and more.
constexpr std::int64_t kTokens = 16384, kHidden = 4096, kWords = 50304;

void measure_ceilings() {
  constexpr std::int64_t kBytes = std::int64_t{2} << 30;
  const Tensor from(kBytes / 4, 1, Dtype::kFp32), to(kBytes / 4, 1, Dtype::kFp32);
  const Seconds time = median_time(
      [&] { cuda().device.copy(to.memory.data(), from.memory.data(), Bytes(kBytes), nullptr); }, 2);
  copy_rate = 2.0 * kBytes / time.value;
  add("copy 2 GiB on the device", time, 2.0 * kBytes, copy_rate, "B/s");
  constexpr std::int64_t kHostBytes = std::int64_t{256} << 20;
  if (void* host = cuda().device.allocate_host(Bytes(kHostBytes)); host != nullptr) {
    for (const bool up : {true, false}) {
      const Seconds way = median_time(
          [&] {
            cuda().device.copy(up ? to.memory.data() : host, up ? host : from.memory.data(),
                               Bytes(kHostBytes), nullptr);
          },
          1);
      add(up ? "copy 256 MiB, pinned host to device" : "copy 256 MiB, device to pinned host", way,
          kHostBytes, kHostBytes / way.value, "B/s");
    }
    cuda().device.release_host(host);
  }
  const Tensor one(1, 8, Dtype::kFp32);
  const Seconds launch = time_of(cuda().kernels.fill, {.y = one, .value = 0.5F}, 200);
  add("kernel launch", launch, 32, copy_rate, "B/s");
}

void measure_elementwise() {
  const KernelTable& k = cuda().kernels;
  const Tensor a(kTokens, kHidden), b(kTokens, kHidden), y(kTokens, kHidden);
  const double size = 2.0 * kTokens * kHidden;
  const std::map<std::string, std::int64_t> sizes{{"tokens", kTokens}, {"hidden", kHidden}};
  stream_row("add, bf16", k.add, {.a = a, .b = b, .y = y}, 3 * size);
  name_for_csv("add", sizes);
  stream_row("GELU, bf16", k.activation_forward, {.x = a, .up = {}, .y = y}, 2 * size);
  name_for_csv("activation", sizes);
  stream_row("GELU backward, bf16", k.activation_backward,
             {.x = a, .up = {}, .dy = b, .dx = y, .dup = {}}, 3 * size);
  name_for_csv("activation_backward", sizes);
  const auto swiglu = ActivationFunction::kSwiGlu;
  stream_row("SwiGLU, bf16", k.activation_forward, {.function = swiglu, .x = a, .up = b, .y = y},
             3 * size);
  name_for_csv("gated_activation", sizes);
  const Tensor dup(kTokens, kHidden), dy(kTokens, kHidden);
  stream_row("SwiGLU backward, bf16", k.activation_backward,
             {.function = swiglu, .x = a, .up = b, .dy = dy, .dx = y, .dup = dup}, 5 * size);
  name_for_csv("gated_activation_backward", sizes);
  const Tensor wide(kTokens, kHidden, Dtype::kFp32);
  stream_row("cast bf16 to fp32", k.cast, {.x = a, .y = wide}, 3 * size);
  stream_row("reduce bf16 into bf16", k.reduce, {.into = y, .from = a}, 3 * size);
  const Tensor bias(1, kHidden), dbias(1, kHidden, Dtype::kFp32);
  stream_row("bias add, bf16", k.bias_add, {.x = a, .bias = bias, .y = y}, 2 * size);
  stream_row("bias gradient, bf16", k.bias_gradient, {.dy = a, .dbias = dbias}, size);
}

void measure_norms() {
  const KernelTable& k = cuda().kernels;
  for (const std::int64_t hidden : {768, 4096, 8192}) {
    const std::int64_t tokens = kTokens * kHidden / hidden;
    const Tensor x(tokens, hidden), y(tokens, hidden), dy(tokens, hidden), weight(1, hidden);
    const Tensor mean(1, tokens, Dtype::kFp32), r(1, tokens, Dtype::kFp32);
    const Tensor dweight(1, hidden, Dtype::kFp32), dbias(1, hidden, Dtype::kFp32);
    const double size = 2.0 * static_cast<double>(tokens * hidden);
    const std::string of = fmt::format(" of {}, bf16", hidden);
    stream_row(
        "layer norm" + of, k.norm_forward,
        {.x = x, .weight = weight, .bias = weight, .y = y, .mean = mean, .inverse_deviation = r},
        2 * size);
    name_for_csv("norm", {{"tokens", tokens}, {"hidden", hidden}});
    stream_row("layer norm backward" + of, k.norm_backward_input,
               {.x = x, .dy = dy, .weight = weight, .mean = mean, .inverse_deviation = r, .dx = y},
               3 * size);
    stream_row("layer norm weight gradient" + of, k.norm_backward_weight,
               {.x = x,
                .dy = dy,
                .mean = mean,
                .inverse_deviation = r,
                .dweight = dweight,
                .dbias = dbias},
               2 * size);
  }
}

void measure_ends() {
  const KernelTable& k = cuda().kernels;
  constexpr std::int64_t kRows = 8192;
  const Tensor logits(kRows, kWords), gradient(kRows, kWords);
  const Numbers targets(kRows, kWords);
  const Tensor maximum(1, kRows, Dtype::kFp32), sum(1, kRows, Dtype::kFp32);
  const Tensor loss(1, kRows, Dtype::kFp32);
  const LogitShard shard{.logits = logits, .tokens = kWords};
  const double size = 2.0 * kRows * kWords;
  stream_row("cross-entropy, bf16", k.cross_entropy_forward,
             {.shard = shard, .targets = targets, .maximum = maximum, .sum = sum, .loss = loss},
             size);
  name_for_csv("cross_entropy", {{"tokens", kRows}, {"n", kWords}});
  stream_row(
      "cross-entropy gradient, bf16", k.cross_entropy_gradient,
      {.shard = shard, .targets = targets, .maximum = maximum, .sum = sum, .dlogits = gradient},
      2 * size);
  const Tensor table(kWords, kHidden), y(kTokens, kHidden);
  const Tensor dtable(kWords, kHidden, Dtype::kFp32);
  const Numbers ids(kTokens, kWords);
  const double rows_size = 2.0 * kTokens * kHidden;
  stream_row("embedding, bf16", k.embedding_forward, {.table = table, .ids = ids, .y = y},
             2 * rows_size);
  name_for_csv("embedding", {{"tokens", kTokens}, {"hidden", kHidden}});
  stream_row("embedding backward, bf16 to fp32", k.embedding_backward,
             {.dy = y, .ids = ids, .dtable = dtable}, 5 * rows_size);
}

void measure_optimizer() {
  const KernelTable& k = cuda().kernels;
  constexpr std::int64_t kParameters = std::int64_t{256} << 20;
  const Tensor w(1, kParameters, Dtype::kFp32), m(1, kParameters, Dtype::kFp32);
  const Tensor v(1, kParameters, Dtype::kFp32), g(1, kParameters, Dtype::kFp32);
  const Tensor p(1, kParameters), sum(1, 1, Dtype::kFp32);
  cuda().device.fill(v.memory.data(), 0, Bytes(4 * kParameters), nullptr);  // never negative
  stream_row("AdamW, fp32 with bf16 copy", k.adamw,
             {.master = w, .first_moment = m, .second_moment = v, .gradient = g, .parameter = p},
             30.0 * kParameters);
  stream_row("squared norm, fp32", k.squared_norm, {.x = g, .sum = sum.one()}, 4.0 * kParameters);
  std::vector<BucketPart> parts;
  for (std::int64_t i = 0; i < 256; ++i)
    parts.push_back({part_of(Vector(p), i << 20, 1 << 20), i << 20});
  stream_row("pack bucket of 256 tensors, bf16 to fp32", k.pack_bucket,
             {.parts = parts, .bucket = g}, 6.0 * kParameters);
}

void measure_experts() {
  const KernelTable& k = cuda().kernels;
  constexpr std::int64_t kExperts = 64, kChosen = 4, kSlots = kTokens * kChosen;
  const GateShape shape{.tokens = kTokens, .experts = kExperts, .experts_per_token = kChosen};
  const Tensor logits(kTokens, kExperts, Dtype::kFp32), scores(kTokens, kExperts, Dtype::kFp32);
  const Tensor weights(kTokens, kChosen, Dtype::kFp32);
  const Numbers experts(kSlots, kExperts), slot_of_row(kSlots, kSlots), row_of_slot(kSlots, kSlots);
  const Numbers counts(kExperts, 2);
  stream_row("MoE router, top 4 of 64 experts, fp32", k.gate_forward,
             {.shape = shape,
              .logits = logits,
              .correction = {},
              .scores = scores,
              .experts = experts,
              .weights = weights},
             8.0 * kTokens * kExperts + 8.0 * kSlots);
  stream_row("sort by expert", k.sort_by_expert,
             {.experts = experts,
              .slot_of_row = slot_of_row,
              .row_of_slot = row_of_slot,
              .counts = counts},
             12.0 * kSlots);
  const Tensor x(kTokens, kHidden), moved(kSlots, kHidden), y(kTokens, kHidden);
  const double size = 2.0 * kTokens * kHidden;
  stream_row("dispatch to experts, bf16", k.gather_rows,
             {.x = x, .index = slot_of_row, .copies = kChosen, .y = moved}, 5 * size);
  stream_row("combine from experts, bf16", k.combine_rows,
             {.x = moved, .index = row_of_slot, .copies = kChosen, .weights = weights, .y = y},
             5 * size);
}

// ---- products and attention -----------------------------------------------------------------

struct Product {
  std::int64_t m, n, k;
  bool transpose_a, transpose_b;
};

void measure_products() {
  using Best = double (*)(const Gemm&);
  const auto best =
      reinterpret_cast<Best>(plugin_symbol(Backend::kCuda, "meshwright_cuda_best_product_seconds"));
  const std::vector<Product> products{
      {8192, 8192, 8192, false, false},   {16384, 4096, 4096, false, false},
      {16384, 14336, 4096, false, false}, {16384, 4096, 14336, false, true},
      {4096, 14336, 16384, true, false},  {8192, 3072, 768, false, false},
      {8192, 50304, 768, false, true}};
  for (const Product& p : products) {
    const Tensor a(p.transpose_a ? p.k : p.m, p.transpose_a ? p.m : p.k);
    const Tensor b(p.transpose_b ? p.n : p.k, p.transpose_b ? p.k : p.n);
    const Tensor c(p.m, p.n);
    const Gemm gemm{
        .a = a, .transpose_a = p.transpose_a, .b = b, .transpose_b = p.transpose_b, .c = c};
    const double flop =
        2.0 * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
    const Seconds time = time_of(cuda().kernels.gemm, gemm, 3);
    const double bound = best == nullptr ? flop / time.value : flop / best(gemm);
    product_rate = std::max(product_rate, std::max(bound, flop / time.value));
    add(fmt::format("GEMM {} x {} x {} {}{}, bf16", p.m, p.n, p.k, p.transpose_a ? "T" : "N",
                    p.transpose_b ? "T" : "N"),
        time, flop, bound, "flop/s");
    name_for_csv("gemm", {{"m", p.m}, {"n", p.n}, {"k", p.k}});
  }
}

/// All experts in one launch, with unevenly distributed rows; bound by the fastest GEMM.
void measure_expert_products() {
  constexpr std::int64_t kExperts = 8, kRows = 32768, kIn = 4096, kOut = 7168;
  std::vector<std::int64_t> offsets{0};
  for (std::int64_t e = 1; e < kExperts; ++e)
    offsets.push_back(kRows * e / kExperts + 397 * (e % 3 - 1));
  offsets.push_back(kRows);
  const Memory there = Memory(8 * static_cast<std::int64_t>(offsets.size())).filled_with(offsets);
  const std::span<const std::int64_t> firsts(static_cast<const std::int64_t*>(there.data()),
                                             offsets.size());
  const Tensor x(kRows, kIn), weights(kExperts * kIn, kOut), y(kRows, kOut);
  const Tensor dweights(kExperts * kIn, kOut, Dtype::kFp32);
  const double flop = 2.0 * kRows * kIn * kOut;
  const std::string of = fmt::format(", 8 experts, {} x {} x {}, bf16", kRows, kOut, kIn);
  add("grouped GEMM" + of,
      time_of(cuda().kernels.grouped_gemm, {.x = x, .weights = weights, .y = y, .offsets = firsts},
              2),
      flop, product_rate, "flop/s");
  name_for_csv("grouped_gemm",
               {{"experts", kExperts}, {"m", kRows / kExperts}, {"n", kOut}, {"k", kIn}});
  const Tensor dx(kRows, kIn);
  add("grouped GEMM input gradient" + of,
      time_of(cuda().kernels.grouped_gemm,
              {.x = y, .weights = weights, .transpose_weights = true, .y = dx, .offsets = firsts},
              2),
      flop, product_rate, "flop/s");
  add("grouped GEMM weight gradient" + of,
      time_of(cuda().kernels.grouped_gemm_weight,
              {.x = x, .dy = y, .dweights = dweights, .offsets = firsts}, 2),
      flop, product_rate, "flop/s");
}

void measure_attention(std::int64_t length, std::int64_t size) {
  const std::int64_t tokens = 16384, heads = 2048 / size;
  const AttentionShape s{.sequences = tokens / length,
                         .heads = heads,
                         .key_value_heads = heads,
                         .queries = length,
                         .keys = length,
                         .key_size = size,
                         .value_size = size,
                         .scale = 1 / std::sqrt(static_cast<float>(size))};
  const Tensor q(tokens, heads * size), k(tokens, heads * size), v(tokens, heads * size);
  const Tensor out(tokens, heads * size), dout(tokens, heads * size), dq(tokens, heads * size);
  const Tensor dk(tokens, heads * size), dv(tokens, heads * size);
  const Tensor sums(1, tokens * heads, Dtype::kFp32), delta(1, tokens * heads, Dtype::kFp32);
  const double flop = 2.0 * static_cast<double>(tokens) * static_cast<double>(length) *
                      static_cast<double>(heads * size);  // half of 4 T^2 D: causal
  const Seconds forward =
      time_of(cuda().kernels.attention_forward,
              {.shape = s, .q = q, .k = k, .v = v, .out = out, .log_sum_exp = sums}, 3);
  const std::string of = fmt::format(" {} keys, head size {}, causal, bf16", length, size);
  const std::map<std::string, std::int64_t> sizes{
      {"batch", tokens / length}, {"heads", heads},   {"kv_heads", heads}, {"head_dim", size},
      {"seq_q", length},          {"seq_kv", length}, {"causal", 1}};
  add("attention forward," + of, forward, flop, product_rate, "flop/s");
  name_for_csv("attention_forward", sizes);
  const Seconds delta_time = time_of(cuda().kernels.attention_delta,
                                     {.shape = s, .out = out, .dout = dout, .delta = delta}, 3);
  const Seconds backward = time_of(cuda().kernels.attention_backward,
                                   {.shape = s,
                                    .q = q,
                                    .k = k,
                                    .v = v,
                                    .dout = dout,
                                    .log_sum_exp = sums,
                                    .delta = delta,
                                    .dq = dq,
                                    .dk = dk,
                                    .dv = dv,
                                    .out = out},
                                   3);
  add("attention backward," + of, Seconds(delta_time.value + backward.value), 2.5 * flop,
      product_rate, "flop/s");
  name_for_csv("attention_backward", sizes);
}

// ---- output -----------------------------------------------------------------------------------

void write_json(const std::string& file) {
  using Json = nlohmann::ordered_json;
  const DeviceDescription d = cuda().device.describe(0);
  Json table = Json::array();
  for (const Row& r : rows)
    table.push_back({{"what", r.what},
                     {"time_us", r.microseconds},
                     {"achieved_per_s", r.achieved},
                     {"bound_per_s", r.bound},
                     {"unit", r.unit}});
  std::ofstream(file) << Json{{"schema", 1},
                              {"device", d.name},
                              {"driver", d.driver},
                              {"multiprocessors", d.multiprocessors},
                              {"memory_bytes", d.memory.value},
                              {"rounds", rounds},
                              {"rows", table}}
                             .dump(1)
                      << "\n";
}

void write_csv(const std::string& file) {
  constexpr std::array kColumns{"m",        "n",        "k",      "batch",  "heads",
                                "kv_heads", "head_dim", "seq_q",  "seq_kv", "causal",
                                "tokens",   "hidden",   "experts"};
  std::ofstream out(file);
  out << "device,software,method,op,dtype";
  for (const char* column : kColumns) out << ',' << column;
  out << ",time_us,note\n";
  for (const Row& r : rows) {
    if (r.op.empty()) continue;
    out << fmt::format("{},Meshwright,burst,{},bf16", cuda().device.describe(0).name, r.op);
    for (const char* column : kColumns) {
      const auto found = r.sizes.find(column);
      out << ',' << (found == r.sizes.end() ? "" : std::to_string(found->second));
    }
    out << fmt::format(",{:.2f},\"{}\"\n", r.microseconds, r.what);
  }
}

int report(const std::vector<std::string>& arguments) {
  std::string file, csv;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--quick") rounds = 3;
    if (arguments[i] == "-o" && i + 1 < arguments.size()) file = arguments[++i];
    if (arguments[i] == "--csv" && i + 1 < arguments.size()) csv = arguments[++i];
  }
  if (!backend_plugin(Backend::kCuda).missing.empty()) {
    fmt::print(stderr, "error: {}\n", backend_plugin(Backend::kCuda).missing);
    return 4;
  }
  cuda().device.select(0);
  const DeviceDescription d = cuda().device.describe(0);
  fmt::print("{}, {} multiprocessors, {}\n\n", d.name, d.multiprocessors, d.driver);
  fmt::print(
      "| kernel | time (us) | achieved | bound | achieved / bound |\n|---|---|---|---|---|\n");
  measure_ceilings();
  measure_products();
  measure_expert_products();
  for (const std::int64_t size : {64, 128})
    for (const std::int64_t length : {1024, 4096, 16384}) measure_attention(length, size);
  measure_elementwise();
  measure_norms();
  measure_ends();
  measure_optimizer();
  measure_experts();
  fmt::print("\nachieved and bound in GB/s, for GEMM and attention in TFLOP/s\n");
  if (!file.empty()) write_json(file);
  if (!csv.empty()) write_csv(csv);
  return 0;
}

}  // namespace
}  // namespace meshwright

int main(int count, char** arguments) {
  try {
    return meshwright::report({arguments + 1, arguments + count});
  } catch (const meshwright::RuntimeFailure& failure) {
    fmt::print(stderr, "{}", meshwright::format(failure.diagnostic()));
    return 4;
  }
}
