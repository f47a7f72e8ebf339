#include "simulator/fit/measured_kernels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

#include "core/base/error.hpp"
#include "core/base/hash.hpp"
#include "simulator/fit/csv_table.hpp"

namespace meshwright {
namespace {

constexpr double kLargestSize = 1e9;    ///< rows, columns, heads; keeps products in range
constexpr double kMostElements = 1e15;  ///< of one kernel
constexpr double kMicroseconds = 1e-6;
constexpr std::array<std::string_view, 5> kMethodNames{"burst", "sustained", "kernel", "running",
                                                       "host"};

/// How a public collection was measured, by its repository.
struct KnownSource {
  std::string_view repository;
  MeasuringMethod method;
};
constexpr std::array<KnownSource, 12> kKnownSources{{
    {"ai-dynamo/aiconfigurator", MeasuringMethod::kBurst},      // CUDA graph of 6 to 20 calls
    {"deepseek-ai/DeepGEMM", MeasuringMethod::kBurst},          // tables of a README
    {"tile-ai/tilelang", MeasuringMethod::kBurst},              // tables of a README
    {"pytorch/ao", MeasuringMethod::kBurst},                    // CUDA events, median
    {"Dao-AILab/flash-attention", MeasuringMethod::kBurst},     // 30 calls
    {"linkedin/Liger-Kernel", MeasuringMethod::kHost},          // do_bench of eager calls
    {"sitar-lab/NeuSight", MeasuringMethod::kBurst},            // event pairs, fastest 5 of 25
    {"MooreThreads/SimuMax", MeasuringMethod::kSustained},      // 75 and more back-to-back calls
    {"baidu-research/DeepBench", MeasuringMethod::kSustained},  // 400 back-to-back calls
    {"NVIDIA/cudnn-frontend", MeasuringMethod::kKernel},        // profiler, L2 flushed
    {"microsoft/vidur", MeasuringMethod::kRunning},             // profiler, layer after layer
    {"PrincetonUniversity/LLMCompass", MeasuringMethod::kHost}  // synchronizes after each call
}};

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

Kernel stream(Routine routine, Phase phase, double bytes) {
  Kernel kernel;
  kernel.kind = KernelKind::kMemoryBound;
  kernel.routine = routine;
  kernel.phase = phase;
  kernel.memory_traffic = Bytes(static_cast<std::int64_t>(bytes));
  return kernel;
}

/// One row as kernels.
class RowReader {
 public:
  RowReader(const CsvTable& table, const CsvTable::Row& row) : table_(table), row_(row) {
    read_format();
  }

  /// Kernels and family; nullopt with `skipped` set for rows that are no single kernel.
  std::optional<MeasuredKernel> run();
  std::string skipped;  ///< "moe_experts: several kernels"

 private:
  const std::string& text(std::string_view column) const { return table_.text(row_, column); }
  std::int64_t size(std::string_view column) const {
    const double value = number_in(table_, row_, column);
    if (value <= kLargestSize) return static_cast<std::int64_t>(value);
    reject(column, fmt::format("expected at most {}", kLargestSize));
  }
  std::int64_t size(std::string_view column, std::int64_t absent) const {
    return text(column).empty() ? absent : size(column);
  }
  [[noreturn]] void reject(std::string_view column, const std::string& expected) const {
    throw InputError({fmt::format("{}:{}", table_.file, row_.line),
                      fmt::format("invalid value '{}' for '{}': {}", text(column).substr(0, 40),
                                  column, expected),
                      ""});
  }

  void read_format();
  MeasuringMethod method() const;
  bool skip(const std::string& reason) {
    skipped = fmt::format("{}: {}", text("op"), reason);
    return false;
  }
  bool read_op(MeasuredKernel& measured);
  bool read_product(MeasuredKernel& measured);
  bool read_attention(MeasuredKernel& measured);
  Kernel attention(Phase phase) const;
  bool read_stream(MeasuredKernel& measured);
  bool add_stream(MeasuredKernel& measured, Routine routine, double forward, double backward);
  bool read_cross_entropy(MeasuredKernel& measured);
  double elements() const;
  void add_quantization(MeasuredKernel& measured, double elements) const;

  const CsvTable& table_;
  const CsvTable::Row& row_;
  Dtype dtype_ = Dtype::kBf16;
  ProductFormat format_ = ProductFormat::kBf16;
  double element_ = 2;  ///< bytes of an operand
  std::string op_;      ///< without the suffix
  bool forward_ = true, backward_ = false;
};

void RowReader::read_format() {
  std::string name = text("dtype");
  std::replace(name.begin(), name.end(), '_', '-');
  const std::optional<ProductFormat> format = product_format_from_name(name);
  if (!format) reject("dtype", "expected fp32, tf32, bf16, fp16, fp8, fp8_block, mxfp8 or nvfp4");
  format_ = *format;
  const bool is_fp8 = format_ >= ProductFormat::kFp8;
  dtype_ = is_fp8 ? Dtype::kFp8 : static_cast<Dtype>(format_);
  element_ = format_ == ProductFormat::kNvfp4 ? 0.5 : bytes_per_element(dtype_);
}

MeasuringMethod RowReader::method() const {
  if (const std::string& name = text("method"); !name.empty()) {
    const auto found = std::find(kMethodNames.begin(), kMethodNames.end(), name);
    if (found == kMethodNames.end())
      reject("method", "expected burst, sustained, kernel, running or host");
    return static_cast<MeasuringMethod>(found - kMethodNames.begin());
  }
  for (const KnownSource& source : kKnownSources)
    if (text("source_repo") == source.repository) return source.method;
  return MeasuringMethod::kBurst;
}

std::optional<MeasuredKernel> RowReader::run() {
  MeasuredKernel measured;
  measured.line = row_.line;
  measured.device = text("device");
  measured.software = text("software");
  measured.source = text("source_repo");
  measured.time = Seconds(kMicroseconds * number_in(table_, row_, "time_us"));
  measured.method = method();
  constexpr Seconds kLeastWholeMicroseconds(10e-6);
  if (measured.source == "microsoft/vidur" && measured.time < kLeastWholeMicroseconds) {
    skip("times rounded to 1 us");
    return std::nullopt;
  }
  if (!read_op(measured)) return std::nullopt;
  std::string shape = text("op") + text("dtype");
  for (const char* column : {"m", "n", "k", "batch", "heads", "kv_heads", "head_dim", "seq_q",
                             "seq_kv", "causal", "tokens", "hidden", "experts"})
    shape += "," + text(column);
  measured.shape_hash = fnv1a(shape);
  return measured;
}

bool RowReader::read_op(MeasuredKernel& measured) {
  op_ = text("op");
  constexpr std::string_view kBoth = "_forward_backward", kBackward = "_backward",
                             kForward = "_forward";
  if (op_.ends_with(kBoth)) {
    op_.resize(op_.size() - kBoth.size());
    backward_ = true;
  } else if (op_.ends_with(kBackward)) {
    op_.resize(op_.size() - kBackward.size());
    backward_ = true;
    forward_ = false;
  } else if (op_.ends_with(kForward)) {
    op_.resize(op_.size() - kForward.size());
  }
  if (op_ == "gemm" || op_ == "batched_gemm" || op_ == "grouped_gemm")
    return read_product(measured);
  if (op_ == "attention") return read_attention(measured);
  return read_stream(measured);
}

/// Reads the activations in 16 bits and writes them in the format of the product.
void RowReader::add_quantization(MeasuredKernel& measured, double elements) const {
  measured.extra = stream(Routine::kCast, Phase::kForward, elements * (2 + element_));
  measured.extra_name = fmt::format("conversion to {}", name_of(format_));
}

bool RowReader::read_product(MeasuredKernel& measured) {
  if (measured.method == MeasuringMethod::kHost) return skip("clocks of a device that idles");
  const bool grouped = op_ == "grouped_gemm";
  Kernel kernel;
  kernel.kind = grouped ? KernelKind::kGroupedGemm : KernelKind::kGemm;
  kernel.dtype = dtype_;
  kernel.format = format_;
  kernel.batch = grouped ? size("experts") : size("batch", 1);
  kernel.m = size("m");
  kernel.n = size("n");
  kernel.k = size("k");
  const auto b = static_cast<double>(kernel.batch), m = static_cast<double>(kernel.m),
             n = static_cast<double>(kernel.n), k = static_cast<double>(kernel.k);
  if (b * (m * k + k * n + m * n) > kMostElements) reject("m", "product too large");
  kernel.flops = Flops(2 * b * m * n * k);
  const double result = std::max(2.0, element_);  // 8-bit products write 16 bits
  kernel.memory_traffic =
      Bytes(static_cast<std::int64_t>(b * ((m * k + k * n) * element_ + m * n * result)));
  if (contains(text("note"), "adds into fp32")) {
    kernel.phase = Phase::kBackwardWeight;
    kernel.memory_traffic += Bytes(
        static_cast<std::int64_t>(b * m * n * (2 * static_cast<double>(kFloat32Bytes) - result)));
  }
  const bool quantizes =
      format_ >= ProductFormat::kFp8 && measured.source == "ai-dynamo/aiconfigurator";
  if (quantizes) add_quantization(measured, b * m * k);
  // Forward, input gradient and weight gradient are three products of the same size.
  for (int i = 0; i < (forward_ ? 1 : 0) + (backward_ ? 2 : 0); ++i)
    measured.work.push_back(kernel);
  constexpr Flops kSmallProduct(1e9);
  measured.family = fmt::format("{} {}{}", grouped ? "grouped gemm" : "gemm", name_of(format_),
                                kernel.flops < kSmallProduct ? " < 1 GFLOP" : "");
  return true;
}

Kernel RowReader::attention(Phase phase) const {
  Kernel kernel;
  kernel.kind = KernelKind::kAttention;
  kernel.routine = Routine::kAttention;
  kernel.phase = phase;
  kernel.dtype = dtype_;
  const std::int64_t sequences = size("batch"), heads = size("heads");
  const std::int64_t key_heads = size("kv_heads", heads);
  kernel.batch = sequences * heads;
  kernel.m = size("seq_q");
  kernel.n = size("seq_kv");
  kernel.k = kernel.value_size = size("head_dim");
  if (contains(text("note"), "v head 128")) kernel.value_size = 128;  // DeepSeek-V3: 192 and 128
  kernel.causal = text("causal") == "1";
  const auto rows = static_cast<double>(kernel.batch) * static_cast<double>(kernel.m);
  const auto keys = static_cast<double>(kernel.n);
  if (rows * keys > kMostElements) reject("seq_q", "attention too large");
  const auto key = static_cast<double>(kernel.k), value = static_cast<double>(kernel.value_size);
  const bool forward = phase == Phase::kForward;
  kernel.flops = Flops(2 * rows * keys * (kernel.causal ? 0.5 : 1.0) *
                       (forward ? key + value : 3 * key + 2 * value));
  const double elements =
      rows * (key + value) + static_cast<double>(sequences * key_heads) * keys * (key + value);
  kernel.memory_traffic = Bytes(static_cast<std::int64_t>((forward ? 1 : 2) * elements * element_));
  return kernel;
}

bool RowReader::read_attention(MeasuredKernel& measured) {
  const bool spans = measured.source == "MooreThreads/SimuMax" && text("method").empty();
  if (spans) measured.method = MeasuringMethod::kRunning;  // times its products by the host clock
  const std::string& software = measured.software;
  if (contains(text("note"), "sliding window")) return skip("sliding window");
  if (contains(software, "unfused") || contains(software, "FlashAttention-1"))
    return skip("not the attention of current programs");
  if (contains(software, "TensorRT-LLM")) return skip("rotary embedding included");
  measured.flash_attention_2 =
      contains(software, "FlashAttention-2") || contains(software, "FlashAttention 2");
  if (forward_) measured.work.push_back(attention(Phase::kForward));
  if (backward_) measured.work.push_back(attention(Phase::kBackwardInput));
  // The keys and values are also copied to the cache.
  if (contains(text("note"), "KV-cache write")) {
    const Kernel& kernel = measured.work.front();
    const double cache = static_cast<double>(size("batch") * size("kv_heads", size("heads"))) *
                         static_cast<double>(kernel.n * (kernel.k + kernel.value_size));
    measured.extra_name = "copy to the cache";
    measured.extra = stream(Routine::kResidual, Phase::kForward, 2 * cache * element_);
  }
  const char* pass = !backward_ ? "forward" : forward_ ? "both passes" : "backward";
  const bool is_fp8 = dtype_ == Dtype::kFp8;
  measured.family = fmt::format("attention {}{}{}", pass, is_fp8 ? " fp8" : "",
                                measured.flash_attention_2 ? " (FlashAttention-2)" : "");
  return true;
}

double RowReader::elements() const {
  const double count = static_cast<double>(size("tokens")) * static_cast<double>(size("hidden"));
  if (count > kMostElements) reject("tokens", "tensor too large");
  return count;
}

void name_stream_family(MeasuredKernel& measured) {
  constexpr Bytes kSmallStream(1 << 20);
  const Kernel& last = measured.work.back();
  measured.family = fmt::format("{}{}", name_of(stream_family_of(last.routine, last.phase)),
                                last.memory_traffic < kSmallStream ? " < 1 MiB" : "");
}

/// `forward` and `backward`: elements read and written per element of the tensor.
bool RowReader::add_stream(MeasuredKernel& measured, Routine routine, double forward,
                           double backward) {
  const double bytes = elements() * element_;
  if (forward_) measured.work.push_back(stream(routine, Phase::kForward, forward * bytes));
  if (backward_) measured.work.push_back(stream(routine, Phase::kBackwardInput, backward * bytes));
  name_stream_family(measured);
  return true;
}

bool RowReader::read_cross_entropy(MeasuredKernel& measured) {
  const double bytes =
      static_cast<double>(size("tokens")) * static_cast<double>(size("n")) * element_;
  if (bytes > kMostElements) reject("tokens", "tensor too large");
  if (!contains(text("note"), "eager torch")) return skip("unknown passes over the logits");
  // Log-softmax reads and writes; its backward pass reads two and writes one, after a scatter.
  const double forward = 2, backward = 4;
  if (forward_)
    measured.work.push_back(stream(Routine::kCrossEntropy, Phase::kForward, forward * bytes));
  if (backward_)
    measured.work.push_back(
        stream(Routine::kCrossEntropy, Phase::kBackwardInput, backward * bytes));
  name_stream_family(measured);
  return true;
}

/// Rows of programs that run several kernels, or a slow one, where others run one fused kernel: a
/// property of the program, not of the device.
bool is_unfused(std::string_view op, std::string_view software, std::string_view note) {
  const bool is_eager = software.starts_with("torch (Liger") || software == "torch eager" ||
                        software == "torch.compile" || software.starts_with("megatron (Liger");
  if (software.starts_with("huggingface")) return op != "embedding";
  if (contains(note, "eager or norm kernel only")) return true;
  return is_eager && op != "softmax" && op != "embedding";
}
/// Kernels that training programs do not use: those of an inference server, and embeddings and
/// softmax other than PyTorch's.
bool is_foreign(std::string_view op, std::string_view source, std::string_view software) {
  if (source == "linkedin/Liger-Kernel" && software.starts_with("liger"))
    return op == "embedding" || op == "softmax";
  if (op == "embedding" && software.starts_with("torch_compile")) return true;
  return source == "microsoft/vidur" && (op == "norm" || op == "rope" || op == "embedding");
}

bool RowReader::read_stream(MeasuredKernel& measured) {
  const std::string& note = text("note");
  if (op_ == "cross_entropy") return read_cross_entropy(measured);
  if (is_unfused(op_, measured.software, note)) return skip("several kernels");
  if (is_foreign(op_, measured.source, measured.software))
    return skip("not a kernel of training programs");
  if (op_ == "norm") return add_stream(measured, Routine::kRmsNorm, 2, 3);
  if (op_ == "add_norm") return add_stream(measured, Routine::kRmsNorm, 4, 4);
  if (op_ == "gated_activation" ||
      (op_ == "activation" && (contains(note, "gated") || contains(note, "SwiGLU"))))
    return add_stream(measured, Routine::kSwiGlu, 3, 5);
  if (op_ == "activation") return add_stream(measured, Routine::kGelu, 2, 3);
  if (op_ == "add" || op_ == "mul") return add_stream(measured, Routine::kResidual, 3, 3);
  if (op_ == "softmax") return add_stream(measured, Routine::kSoftmax, 2, 3);
  if (op_ == "embedding" && !backward_) return add_stream(measured, Routine::kEmbedding, 2, 0);
  if (op_ == "cast") {
    // A graph replays the call on the same operands, which caches of up to 128 MB keep.
    constexpr double kBeyondCaches = 256e6;
    if (contains(note, "block scales")) return skip("block scales");
    if (measured.source == "ai-dynamo/aiconfigurator" &&
        1.5 * elements() * element_ < kBeyondCaches)
      return skip("operands in the cache");
    return add_stream(measured, Routine::kProduct, 1.5, 1.5);
  }
  if (op_ == "rope") {
    const auto width = static_cast<double>((size("heads") + size("kv_heads")) * size("head_dim"));
    const double bytes = 2 * static_cast<double>(size("tokens")) * width * element_;
    measured.work.push_back(
        stream(Routine::kRotary, backward_ ? Phase::kBackwardInput : Phase::kForward, bytes));
    name_stream_family(measured);
    return true;
  }
  return skip("not a kernel that the device model prices");
}

/// Empty for kernels that were not timed through eager autograd.
std::string autograd_key(const CsvTable& table, const CsvTable::Row& row) {
  const std::string& op = table.text(row, "op");
  if (table.text(row, "source_repo") != "linkedin/Liger-Kernel" || !op.ends_with("backward"))
    return "";
  return fmt::format("{}, {}, {}", op, table.text(row, "software"), table.text(row, "note"));
}
/// The least time of each kernel: eager autograd takes that long on the host at any size, so that
/// times near it do not depend on the device.
std::map<std::string, double> autograd_times(const CsvTable& table, const std::string& device) {
  std::map<std::string, double> least;
  for (const CsvTable::Row& row : table.rows) {
    const std::string key = autograd_key(table, row);
    if (key.empty() || table.text(row, "device") != device) continue;
    const double time = number_in(table, row, "time_us");
    const auto [entry, is_new] = least.emplace(key, time);
    if (!is_new) entry->second = std::min(entry->second, time);
  }
  return least;
}

/// The device whose rows are wanted.
std::string chosen_device(const CsvTable& table, const std::string& device) {
  std::set<std::string> names;
  for (const CsvTable::Row& row : table.rows) names.insert(table.text(row, "device"));
  const std::vector<std::string> list(names.begin(), names.end());
  if (device.empty()) {
    if (list.size() == 1) return list.front();
    throw InputError({table.file, fmt::format("kernels of {} devices", list.size()),
                      fmt::format("choose one with --device: {}", fmt::join(list, ", "))});
  }
  if (names.contains(device)) return device;
  throw InputError(
      {table.file, fmt::format("no kernels of device '{}'", device), suggest(device, list)});
}

/// fp32 products without tensor cores are other kernels, with tiles and clocks of their own. They
/// count only where nothing else was measured.
void skip_plain_fp32(std::vector<MeasuredKernel>& kernels, std::map<std::string, int>& skipped) {
  constexpr int kEnough = 20;
  const auto is_product = [](const MeasuredKernel& kernel) {
    return kernel.work.front().kind == KernelKind::kGemm;
  };
  const auto is_plain = [&](const MeasuredKernel& kernel) {
    return is_product(kernel) && kernel.work.front().format == ProductFormat::kFp32;
  };
  const auto others = std::count_if(kernels.begin(), kernels.end(), [&](const auto& kernel) {
    return is_product(kernel) && !is_plain(kernel);
  });
  if (others < kEnough) return;
  const auto kept = std::remove_if(kernels.begin(), kernels.end(), is_plain);
  if (kept != kernels.end())
    skipped["gemm: fp32 without tensor cores"] = static_cast<int>(kernels.end() - kept);
  kernels.erase(kept, kernels.end());
}

}  // namespace

std::string_view name_of(MeasuringMethod method) {
  return kMethodNames[static_cast<std::size_t>(method)];
}

MeasuredKernels read_measured_kernels(std::string_view text, const std::string& file,
                                      const std::string& device) {
  const CsvTable table = read_csv_table(text, file);
  for (const char* column : {"op", "dtype", "time_us"})
    if (!table.has(column))
      throw InputError({file + ":1", fmt::format("missing column '{}'", column),
                        "name the columns in the first line"});
  if (table.rows.empty()) throw InputError({file, "no kernels", "add one row per kernel"});
  const std::string wanted = chosen_device(table, device);
  MeasuredKernels measured;
  std::map<std::string, int> skipped;
  const std::map<std::string, double> host_times = autograd_times(table, wanted);
  for (const CsvTable::Row& row : table.rows) {
    if (table.text(row, "device") != wanted) continue;
    constexpr double kAboveHostTime = 1.3;
    const auto host = host_times.find(autograd_key(table, row));
    if (host != host_times.end() &&
        number_in(table, row, "time_us") < kAboveHostTime * host->second) {
      ++skipped[table.text(row, "op") + ": time of the host's autograd"];
      continue;
    }
    RowReader reader(table, row);
    if (std::optional<MeasuredKernel> kernel = reader.run())
      measured.kernels.push_back(std::move(*kernel));
    else
      ++skipped[reader.skipped];
  }
  skip_plain_fp32(measured.kernels, skipped);
  for (const auto& [reason, count] : skipped)
    measured.notes.push_back(fmt::format("skipped {} rows: {}", count, reason));
  return measured;
}

}  // namespace meshwright
