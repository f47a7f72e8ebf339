// Attention by cuDNN's fused kernels, which on Hopper are faster than mma.sync allows; part of the
// plug-in if it was built with cuDNN's frontend (-DCUDNN_FRONTEND_DIR). cuDNN itself is loaded at
// run time. MESHWRIGHT_ATTENTION=own turns it off. Gradients are summed in a fixed order.
#define NV_CUDNN_FRONTEND_USE_DYNAMIC_LOADING
#include <cudnn_frontend.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <vector>

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

enum Tensor : std::int64_t {
  kQuery = 1,
  kKey,
  kValue,
  kOut,
  kStatistics,
  kOutGradient,
  kQueryGradient,
  kKeyGradient,
  kValueGradient
};

bool fits(const ConstMatrix& m) { return m.dtype == Dtype::kBf16 && has_aligned_rows(m); }
/// No window, chunks, dropout or softcap, and if causal, the first query and key at the same
/// position.
bool fits(const AttentionShape& s) {
  return s.queries > 0 && s.keys > 0 && s.key_size % 8 == 0 && s.value_size % 8 == 0 &&
         s.key_size <= 128 && s.value_size <= 128 && s.window == 0 && s.chunk == 0 &&
         s.dropout.mask.probability == 0 && s.softcap == 0 &&
         (!s.causal || s.first_query == s.first_key);
}

struct Plan {
  fe::graph::Graph graph;
  std::int64_t workspace = 0;
  bool is_good = false;

  void build(cudnnHandle_t handle) {
    is_good = graph.build(handle, {fe::HeurMode_t::A}).is_good() &&
              graph.get_workspace_size(workspace).is_good();
  }
};

std::unique_ptr<Plan> new_plan() {
  auto plan = std::make_unique<Plan>();
  plan->graph.set_io_data_type(fe::DataType_t::BFLOAT16)
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT);
  return plan;
}

/// Rows with all heads side by side as a tensor [B, heads, rows, size].
struct Layout {
  std::vector<std::int64_t> dim, stride;
};
Layout layout_of(const ConstMatrix& m, const AttentionShape& s, std::int64_t heads,
                 std::int64_t rows, std::int64_t size) {
  return {{s.sequences, heads, rows, size}, {rows * m.stride, size, m.stride, 1}};
}
Layout queries_layout(const ConstMatrix& m, const AttentionShape& s, std::int64_t size) {
  return layout_of(m, s, s.heads, s.queries, size);
}
Layout keys_layout(const ConstMatrix& m, const AttentionShape& s, std::int64_t size) {
  return layout_of(m, s, s.key_value_heads, s.keys, size);
}
Layout statistics_layout(const AttentionShape& s) {
  return {{s.sequences, s.heads, s.queries, 1}, {s.heads * s.queries, s.queries, 1, 1}};
}

using Attributes = std::shared_ptr<fe::graph::Tensor_attributes>;
Attributes input(Plan& plan, Tensor uid, const Layout& layout) {
  return plan.graph.tensor(
      fe::graph::Tensor_attributes().set_uid(uid).set_dim(layout.dim).set_stride(layout.stride));
}
void set_output(const Attributes& tensor, Tensor uid, const Layout& layout) {
  tensor->set_output(true).set_uid(uid).set_dim(layout.dim).set_stride(layout.stride);
}

std::unique_ptr<Plan> make_plan(cudnnHandle_t handle, const AttentionForward& a) {
  const AttentionShape& s = a.shape;
  auto plan = new_plan();
  const Attributes q = input(*plan, kQuery, queries_layout(a.q, s, s.key_size));
  const Attributes k = input(*plan, kKey, keys_layout(a.k, s, s.key_size));
  const Attributes v = input(*plan, kValue, keys_layout(a.v, s, s.value_size));
  auto [out, statistics] = plan->graph.sdpa(q, k, v,
                                            fe::graph::SDPA_attributes()
                                                .set_name("attention")
                                                .set_generate_stats(true)
                                                .set_attn_scale(s.scale)
                                                .set_causal_mask(s.causal));
  set_output(out, kOut, queries_layout(a.out, s, s.value_size));
  set_output(statistics, kStatistics, statistics_layout(s));
  statistics->set_data_type(fe::DataType_t::FLOAT);
  plan->build(handle);
  return plan;
}

std::unique_ptr<Plan> make_plan(cudnnHandle_t handle, const AttentionBackward& a) {
  const AttentionShape& s = a.shape;
  auto plan = new_plan();
  const Attributes q = input(*plan, kQuery, queries_layout(a.q, s, s.key_size));
  const Attributes k = input(*plan, kKey, keys_layout(a.k, s, s.key_size));
  const Attributes v = input(*plan, kValue, keys_layout(a.v, s, s.value_size));
  const Attributes out = input(*plan, kOut, queries_layout(a.out, s, s.value_size));
  const Attributes dout = input(*plan, kOutGradient, queries_layout(a.dout, s, s.value_size));
  const Attributes statistics = input(*plan, kStatistics, statistics_layout(s));
  statistics->set_data_type(fe::DataType_t::FLOAT);
  auto [dq, dk, dv] = plan->graph.sdpa_backward(q, k, v, out, dout, statistics,
                                                fe::graph::SDPA_backward_attributes()
                                                    .set_name("attention_backward")
                                                    .set_attn_scale(s.scale)
                                                    .set_causal_mask(s.causal)
                                                    .set_deterministic_algorithm(true));
  set_output(dq, kQueryGradient, queries_layout(a.dq, s, s.key_size));
  set_output(dk, kKeyGradient, keys_layout(a.dk, s, s.key_size));
  set_output(dv, kValueGradient, keys_layout(a.dv, s, s.value_size));
  plan->build(handle);
  return plan;
}

/// Everything that a plan depends on.
using PlanKey = std::vector<std::int64_t>;

PlanKey key_of(const AttentionShape& s, std::initializer_list<ConstMatrix> matrices) {
  std::int64_t scale = 0;
  static_assert(sizeof(s.scale) <= sizeof(scale));
  std::memcpy(&scale, &s.scale, sizeof(s.scale));
  PlanKey key{s.sequences, s.heads,      s.key_value_heads, s.queries, s.keys,
              s.key_size,  s.value_size, s.causal,          scale};
  for (const ConstMatrix& m : matrices) key.push_back(m.stride);
  return key;
}
PlanKey key_of(const AttentionForward& a) { return key_of(a.shape, {a.q, a.k, a.v, a.out}); }
PlanKey key_of(const AttentionBackward& a) {
  return key_of(a.shape, {a.q, a.k, a.v, a.out, a.dout, a.dq, a.dk, a.dv});
}

/// Used by one thread at a time: a handle has one stream at a time.
struct Cudnn {
  int device = 0;
  cudnnHandle_t handle = nullptr;
  std::map<PlanKey, std::unique_ptr<Plan>> plans;  ///< keys of both passes differ in length
  Cudnn() = default;
  Cudnn(const Cudnn&) = delete;
  Cudnn& operator=(const Cudnn&) = delete;
  ~Cudnn() {
    plans.clear();  // they belong to the handle
    if (handle != nullptr) static_cast<void>(fe::detail::destroy_handle(handle));
  }
};

/// Those that threads have left behind: making a handle and plans takes half a second. Never
/// destroyed: at exit the driver may be gone already.
struct LeftBehind {
  std::mutex mutex;
  std::vector<std::unique_ptr<Cudnn>> all;
};
LeftBehind& left_behind() {
  static auto* shared = new LeftBehind;
  return *shared;
}

/// A thread's own, by device, until the thread ends.
class OfThread {
 public:
  OfThread() = default;
  OfThread(const OfThread&) = delete;
  OfThread& operator=(const OfThread&) = delete;
  ~OfThread() {
    const std::lock_guard lock(left_behind().mutex);
    for (std::unique_ptr<Cudnn>& one : own_) left_behind().all.push_back(std::move(one));
  }
  Cudnn& on(int device) {
    const auto is_there = [&](const std::unique_ptr<Cudnn>& one) { return one->device == device; };
    auto mine = std::ranges::find_if(own_, is_there);
    if (mine != own_.end()) return **mine;
    const std::lock_guard lock(left_behind().mutex);
    std::vector<std::unique_ptr<Cudnn>>& others = left_behind().all;
    const auto left = std::ranges::find_if(others, is_there);
    if (left == others.end()) {
      own_.push_back(std::make_unique<Cudnn>());
      own_.back()->device = device;
    } else {
      own_.push_back(std::move(*left));
      others.erase(left);
    }
    return *own_.back();
  }

 private:
  std::vector<std::unique_ptr<Cudnn>> own_;
};

/// False without any effect if cuDNN has no kernel.
template <class Arguments>
bool run_plan(cudaStream_t stream, const Arguments& a,
              std::unordered_map<std::int64_t, void*> memory) {
  int device = 0;
  MESHWRIGHT_CUDA(cudaGetDevice(&device));
  thread_local OfThread of_thread;
  Cudnn& mine = of_thread.on(device);
  if (mine.handle == nullptr && fe::detail::create_handle(&mine.handle) != CUDNN_STATUS_SUCCESS)
    return false;
  if (fe::detail::set_stream(mine.handle, stream) != CUDNN_STATUS_SUCCESS) return false;
  std::unique_ptr<Plan>& plan = mine.plans[key_of(a)];
  if (plan == nullptr) plan = make_plan(mine.handle, a);
  if (!plan->is_good) return false;
  void* workspace = nullptr;
  if (plan->workspace > 0)
    MESHWRIGHT_CUDA(cudaMallocAsync(&workspace, static_cast<std::size_t>(plan->workspace), stream));
  const bool is_done = plan->graph.execute(mine.handle, memory, workspace).is_good();
  if (workspace != nullptr) MESHWRIGHT_CUDA(cudaFreeAsync(workspace, stream));
  return is_done;
}

void* writable(const void* data) { return const_cast<void*>(data); }

}  // namespace

std::string cudnn_version() {
  if (!is_there()) return "cuDNN not found";
  const std::size_t v = fe::detail::get_backend_version();  // 91900: 9.19.0
  return "cuDNN " + std::to_string(v / 10000) + "." + std::to_string(v / 100 % 100) + "." +
         std::to_string(v % 100);
}

bool run_by_cudnn(cudaStream_t stream, const AttentionForward& a) {
  if (!is_there() || !fits(a.shape)) return false;
  for (const ConstMatrix& m : {a.q, a.k, a.v, ConstMatrix(a.out)})
    if (!fits(m)) return false;
  return run_plan(stream, a,
                  {{kQuery, writable(a.q.data)},
                   {kKey, writable(a.k.data)},
                   {kValue, writable(a.v.data)},
                   {kOut, a.out.data},
                   {kStatistics, a.log_sum_exp.data()}});
}

bool run_by_cudnn(cudaStream_t stream, const AttentionBackward& a) {
  if (!is_there() || !fits(a.shape) || a.out.empty() || a.accumulate) return false;
  for (const ConstMatrix& m :
       {a.q, a.k, a.v, a.out, a.dout, ConstMatrix(a.dq), ConstMatrix(a.dk), ConstMatrix(a.dv)})
    if (!fits(m)) return false;
  return run_plan(stream, a,
                  {{kQuery, writable(a.q.data)},
                   {kKey, writable(a.k.data)},
                   {kValue, writable(a.v.data)},
                   {kOut, writable(a.out.data)},
                   {kOutGradient, writable(a.dout.data)},
                   {kStatistics, const_cast<float*>(a.log_sum_exp.data())},
                   {kQueryGradient, a.dq.data},
                   {kKeyGradient, a.dk.data},
                   {kValueGradient, a.dv.data}});
}

}  // namespace meshwright::cuda
