"""PyTorch models as operator graphs, for the graph planner."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._calls import Call, FileText
from ._results import Partition

if TYPE_CHECKING:
    from ._calls import Option, Source


class OperatorGraph:
    """Operators and shapes of a model, without weights. `onnx` is the graph as a file."""

    def __init__(self, onnx: bytes) -> None:
        self.onnx = onnx

    def partition(self, cluster: Source, *, devices: int | None = None,
                  microbatches: int | None = None, inference: bool = False,
                  **options: Option) -> Partition:
        """
        The partition over the devices of a cluster with the best throughput. `help("partition")`
        lists the options.
        """
        call = Call("partition", dict(cluster=cluster, devices=devices, microbatches=microbatches,
                                      inference=inference, **options),
                    FileText("model.onnx", self.onnx))
        return Partition(call, call.run(json=True)[0])

    def save(self, path: Source) -> None:
        """Write the graph, for `meshwright partition`."""
        Path(path).write_bytes(self.onnx)


def from_torch(model: Any, args: tuple[Any, ...],
               kwargs: Mapping[str, Any] | None = None) -> OperatorGraph:
    """
    The graph of a PyTorch model (torch.export), called with example inputs, whose sizes are those of
    one micro-batch. Requires PyTorch 2.5 or later; models on the device "meta" need no memory.

        graph = from_torch(model, (tokens,))
        graph.partition("dgx-h100", devices=8).step_time
    """
    from .export_graph import graph_of

    return OperatorGraph(graph_of(model, args, kwargs))
