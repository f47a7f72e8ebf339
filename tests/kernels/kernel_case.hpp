/// Fixtures for kernel tests: tensors that own their memory, the variants to test, working memory
/// of exactly the requested size, and comparisons whose tolerance follows from the dtype.
///
/// A case is written once: it runs on the reference and on every variant this processor can run
/// (levels of the CPU kernels, products by oneDNN, the CUDA kernels on an emulated GPU, and on a
/// real one if there is one), in fp32 and bf16, and compares. Gradients of the reference itself are
/// compared with finite differences.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "kernels/bfloat16.hpp"
#include "kernels/cpu/levels.hpp"
#include "kernels/device/backend_plugin.hpp"
#include "kernels/device/staged_kernels.hpp"
#include "kernels/kernel_table.hpp"
#include "tests/kernels/emulated/table.hpp"

namespace meshwright {

/// A matrix with its memory. Rows may be padded; the padding must never change (see padding()).
class TestMatrix {
 public:
  TestMatrix(std::int64_t rows, std::int64_t columns, Dtype dtype = Dtype::kFp32,
             std::int64_t padding = 0)
      : rows_(rows),
        columns_(columns),
        stride_(columns + padding),
        dtype_(dtype),
        memory_(static_cast<std::size_t>(rows * stride_ * bytes_per_element(dtype)) + 4) {
    for (std::int64_t i = 0; i < rows_ * stride_; ++i) set_flat(i, kPadding);
    fill(0);
  }

  double operator()(std::int64_t row, std::int64_t column) const {
    return at_flat(row * stride_ + column);
  }
  void set(std::int64_t row, std::int64_t column, double value) {
    set_flat(row * stride_ + column, value);
  }
  std::int64_t rows() const { return rows_; }
  std::int64_t columns() const { return columns_; }
  std::int64_t size() const { return rows_ * columns_; }
  Dtype dtype() const { return dtype_; }
  double operator[](std::int64_t i) const { return (*this)(i / columns_, i % columns_); }
  void set(std::int64_t i, double value) { set(i / columns_, i % columns_, value); }

  TestMatrix& fill(double value) {
    for (std::int64_t i = 0; i < size(); ++i) set(i, value);
    return *this;
  }
  /// Multiples of 1/64 in [-1, 1], exact in bf16 and fp32; the same for the same seed.
  TestMatrix& random(unsigned seed, double scale = 1) {
    std::uint64_t state = seed * 2654435761u + 12345;
    for (std::int64_t i = 0; i < size(); ++i) {
      state = state * 6364136223846793005ull + 1442695040888963407ull;
      set(i, scale * (static_cast<double>((state >> 33) % 129) - 64) / 64);
    }
    return *this;
  }
  bool padding_is_untouched() const {
    for (std::int64_t r = 0; r < rows_; ++r)
      for (std::int64_t i = columns_; i < stride_; ++i)
        if (at_flat(r * stride_ + i) != kPadding) return false;
    return true;
  }

  operator Matrix() { return {memory_.data(), rows_, columns_, stride_, dtype_}; }
  operator ConstMatrix() const { return {memory_.data(), rows_, columns_, stride_, dtype_}; }
  operator Vector() { return {memory_.data(), size(), dtype_}; }
  operator ConstVector() const { return {memory_.data(), size(), dtype_}; }
  operator std::span<float>() {
    return {reinterpret_cast<float*>(memory_.data()), static_cast<std::size_t>(size())};
  }
  operator std::span<const float>() const {
    return {reinterpret_cast<const float*>(memory_.data()), static_cast<std::size_t>(size())};
  }
  float* data() { return reinterpret_cast<float*>(memory_.data()); }

 private:
  static constexpr double kPadding = 77;

  double at_flat(std::int64_t i) const {
    if (dtype_ == Dtype::kFp32) return reinterpret_cast<const float*>(memory_.data())[i];
    return from_bf16(reinterpret_cast<const std::uint16_t*>(memory_.data())[i]);
  }
  void set_flat(std::int64_t i, double value) {
    if (dtype_ == Dtype::kFp32)
      reinterpret_cast<float*>(memory_.data())[i] = static_cast<float>(value);
    else
      reinterpret_cast<std::uint16_t*>(memory_.data())[i] = to_bf16(static_cast<float>(value));
  }

  std::int64_t rows_, columns_, stride_;
  Dtype dtype_;
  std::vector<std::byte> memory_;
};

/// Runs a kernel with exactly the working memory it asks for, filled with NaN.
template <class Arguments>
void run_kernel(const KernelEntry<Arguments>& kernel, const Arguments& arguments) {
  const auto size = static_cast<std::size_t>(kernel.scratch_bytes(arguments).value);
  // aligned_alloc wants a multiple of the alignment; the sanitizer sees a write beyond `size`.
  const std::unique_ptr<void, void (*)(void*)> memory(
      ::operator new(size, std::align_val_t(64)),
      [](void* p) { ::operator delete(p, std::align_val_t(64)); });
  for (std::size_t i = 0; i + 4 <= size; i += 4)
    *reinterpret_cast<float*>(static_cast<char*>(memory.get()) + i) =
        std::numeric_limits<float>::quiet_NaN();
  kernel(Launch{nullptr, memory.get(), Bytes(static_cast<std::int64_t>(size))}, arguments);
}

inline const KernelTable& reference_kernels() { return kernel_table(Backend::kReference); }

/// Rounding of one stored value, relative: fp32 has 24 bits, bf16 8. Two computations that are
/// almost equal may round to adjacent numbers, which are two such units apart.
inline double unit_of(Dtype dtype) { return dtype == Dtype::kFp32 ? 0x1p-24 : 0x1p-8; }

/// |actual - expected| <= error + 2 units of |expected|, everywhere; NaN and infinities as
/// expected. `error` bounds the rounding of intermediate sums: about depth * 2^-24 * their largest
/// partial sum.
inline void expect_close(const TestMatrix& actual, const TestMatrix& expected, double error,
                         const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  int reported = 0;
  for (std::int64_t i = 0; i < actual.size(); ++i) {
    const double a = actual[i], e = expected[i];
    if (a == e || (std::isnan(a) && std::isnan(e))) continue;
    const double allowed = error + 2 * unit_of(actual.dtype()) * std::abs(e);
    if (std::abs(a - e) <= allowed) continue;
    ADD_FAILURE() << what << ": element " << i << " of " << actual.size() << " is " << a << ", not "
                  << e << " within " << allowed;
    if (++reported == 3) return;
  }
  EXPECT_TRUE(actual.padding_is_untouched()) << what;
}

inline bool same_bits(const TestMatrix& a, const TestMatrix& b) {
  if (a.size() != b.size()) return false;
  for (std::int64_t i = 0; i < a.size(); ++i)
    if (!(a[i] == b[i])) return false;
  return true;
}

/// A test that runs for every variant and dtype.
struct Variant {
  std::string name;
  KernelTable table;
  Dtype dtype = Dtype::kFp32;
  std::string missing = {};  ///< why it cannot run; empty: it can
  friend void PrintTo(const Variant& v, std::ostream* out) { *out << v.name; }
};
inline std::vector<Variant> all_variants() {
  std::vector<Variant> variants;
  for (const CpuLevel& level : cpu_variants())
    for (const Dtype dtype : {Dtype::kFp32, Dtype::kBf16})
      variants.push_back(
          {std::string(level.name) + "_" + std::string(name_of(dtype)), level.table, dtype});
  for (const Dtype dtype : {Dtype::kFp32, Dtype::kBf16})
    variants.push_back(
        {"staged_" + std::string(name_of(dtype)), staged_kernels(Backend::kCpu), dtype});
  for (const Dtype dtype : {Dtype::kFp32, Dtype::kBf16})
    for (const bool descending : {false, true})
      variants.push_back({std::string(descending ? "emulated_descending_" : "emulated_") +
                              std::string(name_of(dtype)),
                          emulated_kernels(descending), dtype});
  for (const BackendTraits& backend : kBackends)
    for (const Dtype dtype : {Dtype::kFp32, Dtype::kBf16})
      if (has_device_memory(backend.backend))
        variants.push_back({std::string(backend.name) + "_" + std::string(name_of(dtype)),
                            staged_kernels(backend.backend), dtype,
                            backend_plugin(backend.backend).missing});
  return variants;
}
class VariantTest : public testing::TestWithParam<Variant> {
 protected:
  void SetUp() override {
    if (!GetParam().missing.empty()) GTEST_SKIP() << GetParam().missing;
  }
  const KernelTable& kernels() const { return GetParam().table; }
  const KernelTable& reference() const { return reference_kernels(); }
  Dtype dtype() const { return GetParam().dtype; }
  bool is_emulated() const { return GetParam().name.starts_with("emulated"); }
  bool is_cuda() const { return kernels().backend == Backend::kCuda; }
};
inline std::string variant_name(const testing::TestParamInfo<Variant>& test) {
  return test.param.name;
}
#define MESHWRIGHT_ALL_VARIANTS(Suite) \
  INSTANTIATE_TEST_SUITE_P(Every, Suite, testing::ValuesIn(all_variants()), variant_name)

/// Without those of a GPU or its emulation.
inline std::vector<Variant> host_variants() {
  std::vector<Variant> variants = all_variants();
  std::erase_if(variants, [](const Variant& v) { return has_device_memory(v.table.backend); });
  return variants;
}
#define MESHWRIGHT_HOST_VARIANTS(Suite) \
  INSTANTIATE_TEST_SUITE_P(Every, Suite, testing::ValuesIn(host_variants()), variant_name)

/// Sizes around the widths of vectors and tiles.
inline const std::vector<std::int64_t>& odd_sizes() {
  static const std::vector<std::int64_t> sizes{0, 1, 3, 17, 63, 65};
  return sizes;
}

/// Compares a gradient with the five-point difference of `loss` in every element of x:
///   f' = (f(-2h) - 8 f(-h) + 8 f(h) - f(2h)) / 12h + h^4 f^(5) / 30
/// h = 2^-5 and x are such that x +- 2h is exact in fp32. Truncation is 3e-8 f^(5); the results'
/// rounding, 2^-24 each, becomes 1.5 * 2^-24 / h = 3e-6 for each of size one. A wrong term of a
/// formula is off by 1e-2 or more.
inline void expect_gradient(TestMatrix& x, const TestMatrix& gradient,
                            const std::function<double()>& loss, const std::string& what,
                            double tolerance = 1e-4) {
  constexpr double h = 0x1p-5;
  for (std::int64_t i = 0; i < x.size(); ++i) {
    const double before = x[i];
    const auto moved = [&](double step) {
      x.set(i, before + step);
      return loss();
    };
    const double difference =
        (moved(-2 * h) - 8 * moved(-h) + 8 * moved(h) - moved(2 * h)) / (12 * h);
    x.set(i, before);
    EXPECT_NEAR(gradient[i], difference, tolerance * std::max(1.0, std::abs(difference)))
        << what << ", element " << i;
  }
}

/// sum of a * b: a loss whose gradient with respect to a is b.
inline double dot(const TestMatrix& a, const TestMatrix& b) {
  double sum = 0;
  for (std::int64_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace meshwright
