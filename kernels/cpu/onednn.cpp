// Products by oneDNN's matmul primitives, made once per shape and thread.
//
// oneDNN uses OpenMP, whose number of threads is set by each calling thread: one.
// omp_set_num_threads() is looked up at run time, so that the call reaches the OpenMP library that
// oneDNN has loaded.
#include "kernels/cpu/onednn.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <map>
#include <oneapi/dnnl/dnnl.hpp>
#include <optional>
#include <tuple>
#include <unordered_map>

#include "kernels/cpu/levels.hpp"

namespace meshwright {
namespace {

using dnnl::memory;

/// Cache key of a primitive: the arguments of a product without their data.
struct ProductKey {
  memory::dim m, n, k, stride_a, stride_b, stride_c;
  bool transpose_a, transpose_b;
  Dtype a, b, c, bias;
  bool has_bias;
  float beta;
  auto tied() const {
    return std::tie(m, n, k, stride_a, stride_b, stride_c, transpose_a, transpose_b, a, b, c, bias,
                    has_bias, beta);
  }
  friend bool operator<(const ProductKey& x, const ProductKey& y) { return x.tied() < y.tied(); }
};
ProductKey key_of(const Gemm& g) {
  return {.m = g.c.rows,
          .n = g.c.columns,
          .k = g.transpose_a ? g.a.rows : g.a.columns,
          .stride_a = g.a.stride,
          .stride_b = g.b.stride,
          .stride_c = g.c.stride,
          .transpose_a = g.transpose_a,
          .transpose_b = g.transpose_b,
          .a = g.a.dtype,
          .b = g.b.dtype,
          .c = g.c.dtype,
          .bias = g.bias.dtype,
          .has_bias = !g.bias.empty(),
          .beta = g.beta};
}

memory::data_type type_of(Dtype dtype) {
  return dtype == Dtype::kFp32 ? memory::data_type::f32 : memory::data_type::bf16;
}
memory::desc desc_of(memory::dim rows, memory::dim columns, memory::dim stride, bool transposed,
                     Dtype dtype) {
  return {{rows, columns},
          type_of(dtype),
          transposed ? memory::dims{1, stride} : memory::dims{stride, 1}};
}

struct Primitive {
  memory::desc a, b, c, bias;
  dnnl::matmul multiply;
};

/// One per thread: primitives own working memory, so concurrent calls must not share them.
class OneDnn {
 public:
  OneDnn() : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {
    using SetThreads = void (*)(int);
    if (void* set = dlsym(RTLD_DEFAULT, "omp_set_num_threads"))
      reinterpret_cast<SetThreads>(set)(1);  // NOLINT: what dlsym() returns
  }

  /// False if oneDNN has no fast code for the shape.
  bool multiply(const Gemm& g) {
    const std::optional<Primitive>& p = primitive(key_of(g));
    if (!p) return false;
    const auto at = [&](const memory::desc& desc, const void* data) {
      return memory(desc, engine_, const_cast<void*>(data));  // NOLINT: only c is written
    };
    std::unordered_map<int, memory> arguments{{DNNL_ARG_SRC, at(p->a, g.a.data)},
                                              {DNNL_ARG_WEIGHTS, at(p->b, g.b.data)},
                                              {DNNL_ARG_DST, at(p->c, g.c.data)}};
    if (!g.bias.empty()) arguments.emplace(DNNL_ARG_BIAS, at(p->bias, g.bias.data));
    p->multiply.execute(stream_, arguments);
    return true;
  }

 private:
  const std::optional<Primitive>& primitive(const ProductKey& key) {
    constexpr std::size_t kMost = 4096;  // more shapes than a model has; groups of experts vary
    if (primitives_.size() >= kMost) primitives_.clear();
    const auto [place, is_new] = primitives_.try_emplace(key);
    if (is_new) place->second = make(key);
    return place->second;
  }

  std::optional<Primitive> make(const ProductKey& key) const {
    Primitive p;
    p.a = desc_of(key.m, key.k, key.stride_a, key.transpose_a, key.a);
    p.b = desc_of(key.k, key.n, key.stride_b, key.transpose_b, key.b);
    p.c = desc_of(key.m, key.n, key.stride_c, false, key.c);
    if (key.has_bias) p.bias = desc_of(1, key.n, key.n, false, key.bias);
    dnnl::primitive_attr attributes;
    if (key.beta != 0) {
      dnnl::post_ops adds;
      adds.append_sum(key.beta);
      attributes.set_post_ops(adds);
    }
    try {
#if DNNL_VERSION_MAJOR >= 3
      const dnnl::matmul::primitive_desc made(engine_, p.a, p.b, p.bias, p.c, attributes);
#else
      const dnnl::matmul::primitive_desc made({p.a, p.b, p.bias, p.c}, attributes, engine_);
#endif
      if (std::string_view(made.impl_info_str()).starts_with("ref")) return std::nullopt;
      p.multiply = dnnl::matmul(made);
    } catch (const dnnl::error&) {  // dtype not supported by this processor
      return std::nullopt;
    }
    return p;
  }

  dnnl::engine engine_;
  dnnl::stream stream_;
  std::map<ProductKey, std::optional<Primitive>> primitives_;
};

bool has_avx512() {
  return (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) &
          static_cast<unsigned>(dnnl::cpu_isa::avx512_core)) ==
         static_cast<unsigned>(dnnl::cpu_isa::avx512_core);
}
bool is_used(OneDnnUse use) { return use == OneDnnUse::kPossible || has_avx512(); }

/// Below this many multiply-adds, calling a primitive takes as long as the product itself.
constexpr std::int64_t kSmall = std::int64_t{64} * 64 * 64;

const KernelTable& own_kernels() {
  static const KernelTable table = runnable_cpu_levels().back().table;
  return table;
}

template <OneDnnUse Use>
void multiply(const Launch& launch, const Gemm& g);

/// Runs the parts of a product with GELU; see run_gelu_apart().
template <OneDnnUse Use>
struct RunPart {
  const Launch& launch;
  void operator()(const Gemm& g) const { multiply<Use>(launch, g); }
  void operator()(const ActivationForward& a) const { own_kernels().activation_forward(launch, a); }
  void operator()(const ActivationBackward& a) const {
    own_kernels().activation_backward(launch, a);
  }
};

template <OneDnnUse Use>
void multiply(const Launch& launch, const Gemm& g) {
  if (has_gelu(g)) return run_gelu_apart(g, RunPart<Use>{launch});
  const std::int64_t depth = g.transpose_a ? g.a.rows : g.a.columns;
  const std::int64_t work = g.c.rows * g.c.columns * depth;
  const bool worth_it = Use == OneDnnUse::kPossible ? work > 0 : work >= kSmall;
  thread_local OneDnn library;
  if (!worth_it || !library.multiply(g)) own_kernels().gemm(launch, g);
}

template <OneDnnUse Use, class Group>
void multiply_group(const Launch& launch, const Group& g) {
  run_each_product(g, [&](const Gemm& product) { multiply<Use>(launch, product); });
}

template <OneDnnUse Use>
KernelTable table_for() {
  KernelTable table = own_kernels();
  table.gemm.run = multiply<Use>;
  table.grouped_gemm.run = multiply_group<Use, GroupedGemm>;
  table.grouped_gemm_weight.run = multiply_group<Use, GroupedGemmWeight>;
  return table;
}

}  // namespace

KernelTable onednn_table(OneDnnUse use) {
  if (!is_used(use)) return own_kernels();
  return use == OneDnnUse::kFaster ? table_for<OneDnnUse::kFaster>()
                                   : table_for<OneDnnUse::kPossible>();
}

std::string onednn_summary(OneDnnUse use) {
  if (!is_used(use)) return {};
  const dnnl_version_t* version = dnnl_version();
  return fmt::format("oneDNN {}.{}.{}", version->major, version->minor, version->patch);
}

}  // namespace meshwright
