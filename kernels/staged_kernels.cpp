#include "kernels/staged_kernels.hpp"

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <type_traits>
#include <vector>

#include "core/check.hpp"
#include "kernels/cuda_library.hpp"

namespace meshwright {
namespace {

/// Kernels and the device that they run on.
struct Target {
  const KernelTable& kernels;
  const DeviceTable& device;
};
Target target_of(Backend backend) {
  if (backend == Backend::kCpu) return {kernel_table(Backend::kCpu), host_device()};
  return {cuda_library().exports->kernels, cuda_library().exports->device};
}

// ---- the fields of a struct of arguments --------------------------------------------------

struct Anything {
  template <class T>
  operator T() const;
};
template <class T, class... A>
constexpr std::size_t field_count() {
  if constexpr (requires { T{A{}..., Anything{}}; })
    return field_count<T, A..., Anything>();
  else
    return sizeof...(A);
}

/// Calls visit(field) for every field of an aggregate, in order.
template <class T, class Visit>
void for_each_field(T& object, Visit& visit) {
  constexpr std::size_t kCount = field_count<T>();
  static_assert(kCount >= 2 && kCount <= 12);
  const auto all = [&](auto&... fields) { (visit(fields), ...); };
  if constexpr (kCount == 2) {
    auto& [a, b] = object;
    all(a, b);
  } else if constexpr (kCount == 3) {
    auto& [a, b, c] = object;
    all(a, b, c);
  } else if constexpr (kCount == 4) {
    auto& [a, b, c, d] = object;
    all(a, b, c, d);
  } else if constexpr (kCount == 5) {
    auto& [a, b, c, d, e] = object;
    all(a, b, c, d, e);
  } else if constexpr (kCount == 6) {
    auto& [a, b, c, d, e, f] = object;
    all(a, b, c, d, e, f);
  } else if constexpr (kCount == 7) {
    auto& [a, b, c, d, e, f, g] = object;
    all(a, b, c, d, e, f, g);
  } else if constexpr (kCount == 8) {
    auto& [a, b, c, d, e, f, g, h] = object;
    all(a, b, c, d, e, f, g, h);
  } else if constexpr (kCount == 9) {
    auto& [a, b, c, d, e, f, g, h, i] = object;
    all(a, b, c, d, e, f, g, h, i);
  } else if constexpr (kCount == 10) {
    auto& [a, b, c, d, e, f, g, h, i, j] = object;
    all(a, b, c, d, e, f, g, h, i, j);
  } else if constexpr (kCount == 11) {
    auto& [a, b, c, d, e, f, g, h, i, j, k] = object;
    all(a, b, c, d, e, f, g, h, i, j, k);
  } else {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l] = object;
    all(a, b, c, d, e, f, g, h, i, j, k, l);
  }
}

// ---- memory -------------------------------------------------------------------------------

/// A run of host memory and its copy on the device, at the same distance from a multiple of 16:
/// kernels choose their accesses by that.
struct Region {
  std::byte *begin, *end;
  bool may_be_written;
  std::byte *allocation = nullptr, *device = nullptr;
};

/// Visits the arguments twice: first collects what they view, then puts the device's addresses
/// instead. Two views of one matrix (y = x, or parts of it) stay two views of one.
class Stage {
 public:
  explicit Stage(const DeviceTable& device) : device_(device) {}
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;
  ~Stage() {
    for (const Region& r : regions_) device_.give_back(r.allocation, nullptr);
  }

  template <class Arguments>
  Arguments to_device(Arguments arguments) {
    for_each_field(arguments, *this);
    bring();
    replaces_ = true;
    for_each_field(arguments, *this);
    return arguments;
  }
  void to_host() {
    for (const Region& r : regions_)
      if (r.may_be_written) device_.copy(r.begin, r.device, Bytes(r.end - r.begin), nullptr);
    device_.wait_for_stream(nullptr);
  }

  void operator()(ConstMatrix& m) { visit_matrix(m); }
  void operator()(Matrix& m) { visit_matrix(m); }
  void operator()(ConstVector& v) { visit(v.data, v.size * bytes_per_element(v.dtype)); }
  void operator()(Vector& v) { visit(v.data, v.size * bytes_per_element(v.dtype)); }
  void operator()(LogitShard& shard) { visit_matrix(shard.logits); }
  void operator()(float*& one) { visit(one, one == nullptr ? 0 : 4); }
  void operator()(const float*& one) { visit(one, one == nullptr ? 0 : 4); }
  void operator()(std::span<const std::int64_t>&) {}  // marked "host" in every header
  template <class T>
  void operator()(std::span<T>& values) {
    T* data = values.data();
    visit(data, static_cast<std::int64_t>(values.size_bytes()));
    values = {data, values.size()};
  }
  void operator()(std::span<const BucketPart>& parts) {  // a list on the host of views
    if (!replaces_) parts_.assign(parts.begin(), parts.end());
    for (BucketPart& part : parts_) (*this)(part.vector);
    parts = parts_;
  }
  /// Numbers, flags and shapes.
  template <class T>
  void operator()(T&) {
    static_assert(!std::is_pointer_v<T>);
  }

 private:
  template <class M>
  void visit_matrix(M& m) {
    const std::int64_t elements = m.empty() ? 0 : (m.rows - 1) * m.stride + m.columns;
    visit(m.data, elements * bytes_per_element(m.dtype));
  }
  template <class Pointer>
  void visit(Pointer& data, std::int64_t bytes) {
    if (bytes == 0) return;
    constexpr bool kWritten = !std::is_const_v<std::remove_pointer_t<Pointer>>;
    auto* host = const_cast<std::byte*>(reinterpret_cast<const std::byte*>(data));
    if (!replaces_) return regions_.push_back({host, host + bytes, kWritten});
    for (const Region& r : regions_)
      if (host >= r.begin && host + bytes <= r.end)
        data = reinterpret_cast<Pointer>(r.device + (host - r.begin));
  }

  void bring() {
    std::sort(regions_.begin(), regions_.end(),
              [](const Region& a, const Region& b) { return a.begin < b.begin; });
    std::vector<Region> merged;
    for (const Region& r : regions_)
      if (merged.empty() || r.begin >= merged.back().end) {
        merged.push_back(r);
      } else {
        merged.back().end = std::max(merged.back().end, r.end);
        merged.back().may_be_written |= r.may_be_written;
      }
    regions_ = std::move(merged);
    for (Region& r : regions_) {
      const auto shift = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(r.begin) % 16);
      const Bytes size(r.end - r.begin);
      r.allocation = static_cast<std::byte*>(device_.allocate(Bytes(size.value + shift), nullptr));
      r.device = r.allocation + shift;
      device_.copy(r.device, r.begin, size, nullptr);
    }
  }

  const DeviceTable& device_;
  bool replaces_ = false;
  std::vector<Region> regions_;
  std::vector<BucketPart> parts_;
};

// ---- kernels ------------------------------------------------------------------------------

/// Kernels have the device for themselves: ranks that share it must not slow each other down, and
/// what one takes is what it would take on a device of its own.
std::mutex& device_mutex() {
  static std::mutex mutex;
  return mutex;
}

thread_local Seconds time_of_thread{};

/// Long enough for the host to put all launches of a kernel on the stream before the first begins:
/// what is timed has no gaps in which the device waits for the host.
constexpr Seconds kHeadStart(60e-6);

/// Two events that the work between them is timed by.
class Stopwatch {
 public:
  explicit Stopwatch(const DeviceTable& device)
      : device_(device), first_(device.create_event()), last_(device.create_event()) {}
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;
  ~Stopwatch() {
    device_.destroy_event(first_);
    device_.destroy_event(last_);
  }
  void start() {
    device_.delay(kHeadStart, nullptr);
    device_.record(first_, nullptr);
  }
  void stop() { device_.record(last_, nullptr); }
  Seconds passed() const { return device_.between(first_, last_); }

 private:
  const DeviceTable& device_;
  void *first_, *last_;
};

template <Backend kBackend, class Arguments, KernelEntry<Arguments> KernelTable::*kKernel>
void run_staged(const Launch&, const Arguments& on_host) {
  const Target target = target_of(kBackend);
  const KernelEntry<Arguments>& kernel = target.kernels.*kKernel;
  const std::lock_guard lock(device_mutex());
  Stage stage(target.device);
  const Arguments arguments = stage.to_device(on_host);
  const Bytes size = kernel.scratch_bytes(arguments);
  void* scratch = target.device.allocate(size, nullptr);
  target.device.fill(scratch, 0xFF, size, nullptr);  // NaN in fp32 and in bf16
  Stopwatch watch(target.device);
  watch.start();
  kernel(Launch{nullptr, scratch, size}, arguments);
  watch.stop();
  target.device.give_back(scratch, nullptr);
  stage.to_host();
  time_of_thread = time_of_thread + watch.passed();
}

template <Backend kBackend, auto kKernel>
void stage(KernelTable& table) {
  [&]<class Arguments>(KernelEntry<Arguments>& entry) {
    entry = {&run_staged<kBackend, Arguments, kKernel>, nullptr};
  }(table.*kKernel);
}

template <Backend kBackend, auto... kKernels>
KernelTable staged() {
  // A kernel that is missing below would be null.
  static_assert(sizeof(KernelTable) == 8 + sizeof...(kKernels) * sizeof(KernelEntry<Gemm>));
  KernelTable table;
  table.backend = kBackend;
  (stage<kBackend, kKernels>(table), ...);
  return table;
}

template <Backend kBackend>
KernelTable staged_table() {
  using T = KernelTable;
  return staged<
      kBackend, &T::gemm, &T::grouped_gemm, &T::grouped_gemm_weight, &T::attention_forward,
      &T::attention_merge, &T::attention_delta, &T::attention_backward, &T::attention_sinks,
      &T::attention_sinks_gradient, &T::norm_forward, &T::norm_backward_input,
      &T::norm_backward_weight, &T::activation_forward, &T::activation_backward, &T::rotary_table,
      &T::rotary, &T::copy_heads, &T::embedding_forward, &T::embedding_backward,
      &T::cross_entropy_maximum, &T::cross_entropy_sum, &T::cross_entropy_loss,
      &T::cross_entropy_forward, &T::cross_entropy_gradient, &T::add, &T::bias_add,
      &T::bias_gradient, &T::grouped_bias_gradient, &T::row_gate_forward, &T::row_gate_backward,
      &T::dropout_forward, &T::dropout_backward, &T::round_to_float8, &T::reduce, &T::cast,
      &T::fill, &T::total, &T::mean_squared_error_forward, &T::mean_squared_error_gradient,
      &T::gate_forward, &T::gate_load, &T::gate_auxiliary_loss, &T::gate_backward,
      &T::sort_by_expert, &T::gather_rows, &T::combine_rows, &T::combine_weight_gradient, &T::adamw,
      &T::sgd, &T::squared_norm, &T::clip_scale, &T::pack_bucket, &T::unpack_bucket>();
}

}  // namespace

KernelTable staged_kernels(Backend backend) {
  MW_CHECK(backend != Backend::kReference);
  return backend == Backend::kCuda ? staged_table<Backend::kCuda>() : staged_table<Backend::kCpu>();
}

Seconds staged_time() { return time_of_thread; }

}  // namespace meshwright
