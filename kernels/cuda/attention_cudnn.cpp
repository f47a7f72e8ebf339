// Attention forward by cuDNN's fused kernels, which on Hopper are faster than mma.sync allows; part
// of the plug-in if it was built with cuDNN's frontend (-DCUDNN_FRONTEND_DIR). cuDNN itself is
// loaded at run time. MESHWRIGHT_ATTENTION=own turns it off.
//
// Compiled, but never run yet.
#define NV_CUDNN_FRONTEND_USE_DYNAMIC_LOADING
#include <cudnn_frontend.h>
#include <dlfcn.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string_view>
#include <unordered_map>

#include "kernels/cuda/kernels.hpp"

namespace cudnn_frontend {
/// The frontend looks up all cuDNN functions in this handle.
void* cudnn_dlhandle = nullptr;
}  // namespace cudnn_frontend

namespace meshwright::cuda {
namespace {

namespace fe = cudnn_frontend;

bool is_there() {
  static const bool answer = [] {
    const char* wanted = std::getenv("MESHWRIGHT_ATTENTION");
    if (wanted != nullptr && std::string_view(wanted) == "own") return false;
    const auto open = [](const char* name) { return ::dlopen(name, RTLD_NOW | RTLD_LOCAL); };
    // The frontend loads its own CUDA runtime, and throws if there is none.
    if (open("libcudart.so.13") == nullptr && open("libcudart.so.12") == nullptr) return false;
    fe::cudnn_dlhandle = open("libcudnn.so.9");
    return fe::cudnn_dlhandle != nullptr;
  }();
  return answer;
}

enum Tensor : std::int64_t { kQuery = 1, kKey, kValue, kOut, kStatistics };

/// Everything that a cuDNN plan depends on.
using PlanKey = std::array<std::int64_t, 13>;

bool is_aligned(const ConstMatrix& m) {
  return m.dtype == Dtype::kBf16 && m.stride % 8 == 0 &&
         reinterpret_cast<std::uintptr_t>(m.data) % 16 == 0;
}
/// bf16, no window, dropout or softcap, and if causal, the first query and key at the same
/// position.
bool fits(const AttentionForward& a) {
  const AttentionShape& s = a.shape;
  return s.keys > 0 && s.key_size % 8 == 0 && s.value_size % 8 == 0 && s.key_size <= 128 &&
         s.value_size <= 128 && s.window == 0 && s.dropout.mask.probability == 0 &&
         s.softcap == 0 && (!s.causal || s.first_query == s.first_key) && is_aligned(a.q) &&
         is_aligned(a.k) && is_aligned(a.v) && is_aligned(a.out);
}

struct Plan {
  fe::graph::Graph graph;
  std::int64_t workspace = 0;
  bool is_good = false;
};

/// Describes rows with all heads side by side as a tensor [B, heads, rows, size].
fe::graph::Tensor_attributes attributes_of(Tensor uid, const ConstMatrix& m,
                                           const AttentionShape& s, std::int64_t heads,
                                           std::int64_t rows, std::int64_t size) {
  return fe::graph::Tensor_attributes()
      .set_uid(uid)
      .set_dim({s.sequences, heads, rows, size})
      .set_stride({rows * m.stride, size, m.stride, 1});
}

std::unique_ptr<Plan> make_plan(cudnnHandle_t handle, const AttentionForward& a) {
  const AttentionShape& s = a.shape;
  auto plan = std::make_unique<Plan>();
  fe::graph::Graph& graph = plan->graph;
  graph.set_io_data_type(fe::DataType_t::BFLOAT16)
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT);
  auto q = graph.tensor(attributes_of(kQuery, a.q, s, s.heads, s.queries, s.key_size));
  auto k = graph.tensor(attributes_of(kKey, a.k, s, s.key_value_heads, s.keys, s.key_size));
  auto v = graph.tensor(attributes_of(kValue, a.v, s, s.key_value_heads, s.keys, s.value_size));
  auto [out, statistics] = graph.sdpa(q, k, v,
                                      fe::graph::SDPA_attributes()
                                          .set_name("attention")
                                          .set_generate_stats(true)
                                          .set_attn_scale(s.scale)
                                          .set_causal_mask(s.causal));
  out->set_output(true)
      .set_uid(kOut)
      .set_dim({s.sequences, s.heads, s.queries, s.value_size})
      .set_stride({s.queries * a.out.stride, s.value_size, a.out.stride, 1});
  statistics->set_output(true)
      .set_uid(kStatistics)
      .set_data_type(fe::DataType_t::FLOAT)
      .set_dim({s.sequences, s.heads, s.queries, 1})
      .set_stride({s.heads * s.queries, s.queries, 1, 1});
  plan->is_good = graph.build(handle, {fe::HeurMode_t::A}).is_good() &&
                  graph.get_workspace_size(plan->workspace).is_good();
  return plan;
}

/// One per thread and device: a handle has one stream at a time.
struct Cudnn {
  cudnnHandle_t handle = nullptr;
  std::map<PlanKey, std::unique_ptr<Plan>> plans;
  Cudnn() = default;
  Cudnn(const Cudnn&) = delete;
  Cudnn& operator=(const Cudnn&) = delete;
  ~Cudnn() {
    plans.clear();  // they belong to the handle
    if (handle != nullptr) static_cast<void>(fe::detail::destroy_handle(handle));
  }
};

PlanKey key_of(const AttentionForward& a) {
  const AttentionShape& s = a.shape;
  std::int64_t scale = 0;
  static_assert(sizeof(s.scale) <= sizeof(scale));
  std::memcpy(&scale, &s.scale, sizeof(s.scale));
  return {s.sequences,  s.heads,  s.key_value_heads, s.queries,  s.keys,     s.key_size,
          s.value_size, s.causal, a.q.stride,        a.k.stride, a.v.stride, a.out.stride,
          scale};
}

}  // namespace

bool run_by_cudnn(cudaStream_t stream, const AttentionForward& a) {
  if (!is_there() || !fits(a)) return false;
  int device = 0;
  MESHWRIGHT_CUDA(cudaGetDevice(&device));
  thread_local std::map<int, Cudnn> by_device;
  Cudnn& mine = by_device[device];
  if (mine.handle == nullptr && fe::detail::create_handle(&mine.handle) != CUDNN_STATUS_SUCCESS)
    return false;
  if (fe::detail::set_stream(mine.handle, stream) != CUDNN_STATUS_SUCCESS) return false;
  std::unique_ptr<Plan>& plan = mine.plans[key_of(a)];
  if (plan == nullptr) plan = make_plan(mine.handle, a);
  if (!plan->is_good) return false;
  void* workspace = nullptr;
  if (plan->workspace > 0)
    MESHWRIGHT_CUDA(cudaMallocAsync(&workspace, static_cast<std::size_t>(plan->workspace), stream));
  std::unordered_map<std::int64_t, void*> memory{{kQuery, const_cast<void*>(a.q.data)},
                                                 {kKey, const_cast<void*>(a.k.data)},
                                                 {kValue, const_cast<void*>(a.v.data)},
                                                 {kOut, a.out.data},
                                                 {kStatistics, a.log_sum_exp.data()}};
  const bool is_done = plan->graph.execute(mine.handle, memory, workspace).is_good();
  if (workspace != nullptr) MESHWRIGHT_CUDA(cudaFreeAsync(workspace, stream));
  return is_done;
}

}  // namespace meshwright::cuda
