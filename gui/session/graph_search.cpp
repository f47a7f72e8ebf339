#include "gui/session/graph_search.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.hpp"
#include "models/load/load.hpp"
#include "models/load/trainer_toml.hpp"
#include "models/onnx/onnx.hpp"
#include "simulator/cost/device_cost_model.hpp"

namespace meshwright::gui {
namespace {

constexpr const char* kBatchDimension = "batch";
constexpr std::size_t kPlansWanted = 25;

std::vector<std::int64_t> micro_batches_of(const GraphQuestion& question, bool is_symbolic) {
  const auto fail = [&](const std::string& what, const std::string& hint) {
    throw InputError({question.graph.where, what, hint});
  };
  if (question.micro_batch == 0 && !is_symbolic)
    fail("its inputs have no symbolic dimension 'batch': the micro-batch size is fixed",
         "set the micro-batch size to the number of samples of its inputs");
  const std::int64_t given = question.micro_batch;
  if (given > 0 &&
      (question.global_batch % given != 0 || question.global_batch / given > kMostMicrobatches))
    fail(fmt::format("the micro-batch size {} does not divide the global batch size {}, or into "
                     "too many micro-batches",
                     given, question.global_batch),
         "set a divisor");
  if (given > 0) return {given};
  return searched_micro_batches(question.global_batch);
}

}  // namespace

std::shared_ptr<const GraphAnswer> search_graph(const GraphQuestion& question,
                                                const std::function<bool()>& stop) {
  const bool is_symbolic =
      std::ranges::count(symbolic_dimensions(question.graph), kBatchDimension) > 0;
  const Cluster cluster = cluster_from_toml(question.cluster);
  const int available = device_count(cluster);
  if (question.gpus > available)
    throw InputError({question.cluster.where,
                      fmt::format("{} GPUs on a cluster with {}", question.gpus, available),
                      "use fewer GPUs"});
  const int of_node = node_of(cluster, DeviceId(0)).device_count;
  const int tensor = std::max(1, question.tensor);
  if (question.gpus % tensor != 0 || of_node % tensor != 0)
    throw InputError({question.cluster.where,
                      fmt::format("{} tensor-parallel devices on {} GPUs in nodes of {}", tensor,
                                  question.gpus, of_node),
                      "set a number that divides both"});
  const Trainer trainer = trainer_from_toml(find_trainer(std::string(default_trainer(cluster))));
  const std::unique_ptr<CostModel> cost = make_device_cost_model(cluster, trainer);
  GraphDevices devices = graph_devices(cluster, question.gpus);
  devices.reserved =
      trainer.memory.context.value_or(device_of(cluster, DeviceId(0)).reserved_memory);
  if (question.tensor > 0) devices.tensor = question.tensor;
  const SizedGraph graph{.read =
                             [&](std::int64_t size) {
                               OnnxOptions options;
                               if (is_symbolic) options.dimensions = {{kBatchDimension, size}};
                               return read_onnx(question.graph, options);
                             },
                         .micro_batches = micro_batches_of(question, is_symbolic),
                         .global_batch = question.global_batch};
  auto answer = std::make_shared<GraphAnswer>();
  answer->question = question;
  answer->found =
      plan_graph(graph, cluster, *cost, devices, question.graph.where, kPlansWanted, stop);
  answer->cost_model = cost->provenance();
  return answer;
}

}  // namespace meshwright::gui
