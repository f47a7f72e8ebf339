/// Typed indices: a RankId cannot be passed where a StageId is expected. An ID indexes a vector.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace meshwright {

template <class Tag>
struct Id {
  std::int32_t value = 0;
  constexpr Id() = default;
  constexpr explicit Id(std::int32_t v) : value(v) {}
  constexpr explicit Id(std::size_t v) : value(static_cast<std::int32_t>(v)) {}
  constexpr std::size_t index() const { return static_cast<std::size_t>(value); }
  friend constexpr auto operator<=>(Id, Id) = default;
};

using OperatorId = Id<struct OperatorTag>;  ///< index in ModelGraph::operators
using TensorId = Id<struct TensorTag>;      ///< index in ModelGraph::tensors
using LayerId = Id<struct LayerTag>;        ///< index in ModelGraph::layers
using DeviceId = Id<struct DeviceTag>;      ///< a physical device: node * devices_per_node + slot
using NodeId = Id<struct NodeTag>;          ///< a physical node
using RankId = Id<struct RankTag>;          ///< a process of the job, in rank order
using StageId = Id<struct StageTag>;        ///< a pipeline stage (one model chunk), 0 = embedding
using PipelineRankId = Id<struct PipelineRankTag>;  ///< position in one pipeline, 0..p-1
using MicrobatchId = Id<struct MicrobatchTag>;      ///< within one step
using TaskId = Id<struct TaskTag>;                  ///< index in TaskGraph::tasks
using WorkId = Id<struct WorkTag>;                  ///< index in TaskGraph::works
using LinkId = Id<struct LinkTag>;                  ///< index in LinkNetwork::links

}  // namespace meshwright

template <class Tag>
struct std::hash<meshwright::Id<Tag>> {
  std::size_t operator()(meshwright::Id<Tag> id) const noexcept {
    return std::hash<std::int32_t>{}(id.value);
  }
};
