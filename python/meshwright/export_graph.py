"""
Writes the graph of a PyTorch model for `meshwright partition`: operators and shapes, no weights.

    python -m meshwright.export_graph my_models.py:make -o model.onnx
    meshwright partition model.onnx --cluster dgx-h100

`make` is a function that returns the model and a tuple of example inputs, whose sizes are those of
one micro-batch. The file is ONNX with operators of torch.export; those that ONNX does not have are
of the domain "meshwright". Other runtimes cannot execute it. Requires PyTorch 2.5 or later.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import struct
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

FLOAT, INT64, BOOL = 1, 7, 9  # TensorProto.DataType

# ---- protobuf -----------------------------------------------------------------------------------


def _varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _sized(field: int, content: bytes | str) -> bytes:
    content = content.encode() if isinstance(content, str) else content
    return _varint(field << 3 | 2) + _varint(len(content)) + content


def _attribute(name: str, value: Any) -> bytes:
    text = _sized(1, name)
    if isinstance(value, str):
        return text + _sized(4, value)
    if isinstance(value, float):
        return text + _varint(2 << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, (list, tuple)):
        return text + b"".join(_number(8, int(item)) for item in value)
    return text + _number(3, int(value))


def _type(kind: int, shape: Iterable[int]) -> bytes:
    dims = b"".join(_sized(1, _number(1, size)) for size in shape)
    return _sized(1, _number(1, kind) + _sized(2, dims))


# ---- operators ----------------------------------------------------------------------------------


class Unknown(Exception):
    """An operator or a combination of arguments without a counterpart."""


class Call:
    """A call of an operator: its arguments by name, and its outputs."""

    def __init__(self, node: Any):
        self.node = node
        self.values: dict[str, Any] = {}
        schema = getattr(node.target, "_schema", None)
        names = [argument.name for argument in schema.arguments] if schema else []
        if schema:
            self.values = {argument.name: argument.default_value for argument in schema.arguments
                           if argument.has_default_value()}
        self.values.update(zip(names, node.args))
        self.values.update(node.kwargs)

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def pair(self, name: str, axes: int) -> list[int]:
        """An argument that is one number for all axes, or one per axis."""
        value = self.values.get(name)
        value = list(value) if isinstance(value, (list, tuple)) else [value]
        return value * axes if len(value) == 1 else value


Operator = tuple[str, list[Any], dict[str, Any]]  # name, input nodes, attributes
Translate = Callable[[Call], Operator]


def _shape(value: Any) -> tuple[int, ...]:
    return tuple(int(size) for size in value.meta["val"].shape)


def _convolution(transposed: bool) -> Translate:
    def translate(call: Call) -> Operator:
        axes = len(_shape(call["weight"])) - 2
        padding = call.values.get("padding", 0)
        if isinstance(padding, str):
            pads = {"auto_pad": "VALID" if padding == "valid" else "SAME_UPPER"}
        else:
            pads = {"pads": 2 * call.pair("padding", axes)}
        attributes = {"strides": call.pair("stride", axes), "group": call["groups"],
                      "dilations": call.pair("dilation", axes), **pads}
        if transposed:
            attributes["output_padding"] = call.pair("output_padding", axes)
        return ("ConvTranspose" if transposed else "Conv",
                [call["input"], call["weight"], call["bias"]], attributes)
    return translate


def _attention(call: Call) -> Operator:
    mask = call["attn_mask"]
    return ("Attention", [call["query"], call["key"], call["value"], *([] if mask is None else [mask])],
            {"is_causal": int(call["is_causal"])})


def _pool(operator: str) -> Translate:
    def translate(call: Call) -> Operator:
        kernel = call["kernel_size"]
        axes = len(kernel) if isinstance(kernel, (list, tuple)) else len(_shape(call["self"])) - 2
        stride = call["stride"] if call["stride"] else kernel
        attributes = {"kernel_shape": call.pair("kernel_size", axes),
                      "strides": list(stride) if isinstance(stride, (list, tuple))
                      else [stride] * axes,
                      "pads": 2 * call.pair("padding", axes),
                      "ceil_mode": int(call["ceil_mode"])}
        if "dilation" in call.values:
            attributes["dilations"] = call.pair("dilation", axes)
        return operator, [call["self"]], attributes
    return translate


def _dropout(call: Call) -> Operator:
    if call["train"]:
        return "Mul", [call["input"], call["input"]], {}
    return "View", [call["input"]], {}


def _permutation(order: Callable[[Call, int], list[int]]) -> Translate:
    def translate(call: Call) -> Operator:
        source = call.node.args[0]
        rank = len(_shape(source))
        return "Transpose", [source], {"perm": [axis % rank for axis in order(call, rank)]}
    return translate


def _swapped(call: Call, rank: int) -> list[int]:
    order = list(range(rank))
    a, b = call["dim0"], call["dim1"]
    order[a], order[b] = order[b], order[a]
    return order


def _moved(call: Call, rank: int) -> list[int]:
    places = {to % rank: axis % rank for axis, to in zip(call.pair("source", 1),
                                                         call.pair("destination", 1))}
    others = iter(axis for axis in range(rank) if axis not in places.values())
    return [places[to] if to in places else next(others) for to in range(rank)]


def _unary(operator: str) -> Translate:
    """Of the first argument, whatever its name is."""
    return lambda call: (operator, [call.node.args[0]], {})


def _binary(operator: str) -> Translate:
    return lambda call: (operator, [call["self"], call["other"]], {})


def _conversion(call: Call) -> Operator:
    return "Cast", [call["self"]], {"to": _element_type(call.node.meta["val"].dtype)}


def _embedding(call: Call) -> Operator:
    return "Gather", [call["weight"], call["indices"]], {}


def _product(call: Call) -> Operator:
    return "MatMul", [call["self"], call.values.get("other", call.values.get("mat2"))], {}


def _added_product(call: Call) -> Operator:
    return "Gemm", [call["mat1"], call["mat2"], call["self"]], {}


def _reduction(operator: str) -> Translate:
    def translate(call: Call) -> Operator:
        dims = call.values.get("dim")
        dims = [dims] if isinstance(dims, int) else dims
        axes = {} if dims is None else {"axes": dims}
        keeps = int(call.values.get("keepdim", False))
        return operator, [call["self"]], {"keepdims": keeps, **axes}
    return translate


def _einsum(call: Call) -> Operator:
    return "Einsum", list(call["tensors"]), {"equation": call["equation"]}


def _layer_norm(call: Call) -> Operator:
    return ("LayerNormalization", [call["input"], call["weight"], call["bias"]],
            {"axis": -len(call["normalized_shape"])})


def _rms_norm(call: Call) -> Operator:
    return ("RMSNormalization", [call["input"], call["weight"]],
            {"axis": -len(call["normalized_shape"])})


def _batch_norm(call: Call) -> Operator:
    return ("BatchNormalization", [call["input"], call["weight"], call["bias"],
                                   call["running_mean"], call["running_var"]], {})


def _group_norm(call: Call) -> Operator:
    return ("GroupNormalization", [call["input"], call["weight"], call["bias"]],
            {"num_groups": call["num_groups"]})


def _concat(call: Call) -> Operator:
    return "Concat", list(call["tensors"]), {"axis": call["dim"]}


def _where(call: Call) -> Operator:
    return "Where", [call["condition"], call["self"], call["other"]], {}


def _grouped_product(call: Call) -> Operator:
    return "GroupedMatMul", list(call.node.args[:2]), {}


def _sort(call: Call) -> Operator:
    axis = call.values.get("dim", -1)
    return "TopK", [call["self"]], {"k": _shape(call["self"])[axis], "axis": axis}


def _index_put(call: Call) -> Operator:
    return "ScatterElements", [call["self"], next(i for i in call["indices"] if i is not None),
                               call["values"]], {}


def _extremum(elements: str, reduction: str) -> Translate:
    return lambda call: (_binary(elements)(call) if "other" in call.values
                         else _reduction(reduction)(call))


def _adaptive_pool(call: Call) -> Operator:
    if math.prod(call["output_size"]) != 1:
        raise Unknown("an output of more than one element per channel")
    return "GlobalAveragePool", [call["self"]], {}


_CONVOLUTIONS = {f"conv{axes}d": _convolution(False) for axes in (1, 2, 3)} | {
    f"conv_transpose{axes}d": _convolution(True) for axes in (1, 2, 3)}
_UNARY = {name.lower(): _unary(name) for name in (
    "Abs", "Ceil", "Cos", "Erf", "Exp", "Floor", "Gelu", "Log", "Mish", "Neg", "Reciprocal", "Relu",
    "Round", "Selu", "Sigmoid", "Sign", "Sin", "Softplus", "Sqrt", "Tan", "Tanh")}
_VIEWS = ("_unsafe_view", "alias", "chunk", "contiguous", "detach", "diagonal", "expand",
          "expand_as", "flatten", "narrow", "reshape", "select", "slice", "split",
          "split_with_sizes", "squeeze", "unbind", "unflatten", "unsqueeze", "view", "view_as")
_COPIES = ("clone", "constant_pad_nd", "diff", "fill", "flip", "glu", "histc", "pad", "pixel_shuffle",
           "pixel_unshuffle", "reflection_pad2d", "repeat", "repeat_interleave", "replication_pad2d", "roll",
           "upsample_bilinear2d", "upsample_bicubic2d", "upsample_nearest1d", "upsample_nearest2d")
#: Values that do not depend on their inputs.
_CONSTANTS = ("empty_like", "full_like", "new_empty", "new_full", "new_ones", "new_zeros",
              "ones_like", "zeros_like")
#: By the name of the operator in torch.ops.aten, without the "_" of in-place variants.
OPERATORS: dict[str, Translate] = {
    **_CONVOLUTIONS,
    **_UNARY,
    **{name: _unary("View") for name in _VIEWS},
    **{name: _unary("Copy") for name in _COPIES},
    "adaptive_avg_pool1d": _adaptive_pool,
    "adaptive_avg_pool2d": _adaptive_pool,
    "adaptive_avg_pool3d": _adaptive_pool,
    "__and__": _binary("And"),
    "__or__": _binary("Or"),
    "__xor__": _binary("Xor"),
    "add": _binary("Add"),
    "addmm": _added_product,
    "amax": _reduction("ReduceMax"),
    "amin": _reduction("ReduceMin"),
    "argmax": _unary("ArgMax"),
    "avg_pool1d": _pool("AveragePool"),
    "avg_pool2d": _pool("AveragePool"),
    "batch_norm": _batch_norm,
    "bitwise_and": _binary("And"),
    "bitwise_not": _unary("Not"),
    "bitwise_or": _binary("Or"),
    "baddbmm": lambda call: ("MatMul", [call["batch1"], call["batch2"]], {}),
    "bmm": _product,
    "cat": _concat,
    "clamp": _unary("Clip"),
    "copy": lambda call: ("Copy", [call["src"]], {}),
    "cross_entropy_loss": lambda call: ("SoftmaxCrossEntropyLoss", [call["self"], call["target"]],
                                        {}),
    "cumsum": _unary("CumSum"),
    "div": _binary("Div"),
    "dropout": _dropout,
    "einsum": _einsum,
    "elu": _unary("Elu"),
    "embedding": _embedding,
    "eq": _binary("Equal"),
    "floor_divide": _binary("Div"),
    "gather": lambda call: ("GatherElements", [call["self"], call["index"]], {"axis": call["dim"]}),
    "ge": _binary("GreaterOrEqual"),
    "_grouped_mm": _grouped_product,
    "grouped_mm": _grouped_product,
    "grouped_mm_fallback": _grouped_product,
    "group_norm": _group_norm,
    "gt": _binary("Greater"),
    "hardtanh": _unary("Clip"),
    "hardsigmoid": _unary("HardSigmoid"),
    "hardswish": _unary("HardSwish"),
    "index": lambda call: ("Copy", [call["self"], *(i for i in call["indices"] if i is not None)],
                           {}),
    "index_put": _index_put,
    "index_select": lambda call: ("Gather", [call["self"], call["index"]], {"axis": call["dim"]}),
    "instance_norm": lambda call: ("InstanceNormalization",
                                   [call["input"], call["weight"], call["bias"]], {}),
    "layer_norm": _layer_norm,
    "le": _binary("LessOrEqual"),
    "leaky_relu": _unary("LeakyRelu"),
    "linear": lambda call: ("Linear", [call["input"], call["weight"], call["bias"]], {}),
    "log_softmax": _unary("LogSoftmax"),
    "logical_and": _binary("And"),
    "logical_not": _unary("Not"),
    "logical_or": _binary("Or"),
    "lt": _binary("Less"),
    "masked_fill": lambda call: ("Where", [call["mask"], call["self"]], {}),
    "matmul": _product,
    "max_pool1d": _pool("MaxPool"),
    "max_pool2d": _pool("MaxPool"),
    "max_pool3d": _pool("MaxPool"),
    "max": _extremum("Max", "ReduceMax"),
    "maximum": _binary("Max"),
    "mean": _reduction("ReduceMean"),
    "min": _extremum("Min", "ReduceMin"),
    "minimum": _binary("Min"),
    "mm": _product,
    "movedim": _permutation(_moved),
    "mul": _binary("Mul"),
    "ne": _binary("Equal"),
    "numpy_T": _permutation(lambda call, rank: list(reversed(range(rank)))),
    "permute": _permutation(lambda call, rank: list(call["dims"])),
    "pow": lambda call: ("Pow", [call["self"], call["exponent"]], {}),
    "prelu": lambda call: ("PRelu", [call["self"], call["weight"]], {}),
    "relu6": _unary("Clip"),
    "rms_norm": _rms_norm,
    "rsqrt": _unary("Reciprocal"),
    "rsub": _binary("Sub"),
    "scaled_dot_product_attention": _attention,
    "scatter": lambda call: ("ScatterElements", [call["self"], call["index"], call["src"]], {}),
    "scatter_add": lambda call: ("ScatterElements", [call["self"], call["index"], call["src"]], {}),
    "silu": _unary("Swish"),
    "softmax": _unary("Softmax"),
    "_softmax": _unary("Softmax"),
    "sub": _binary("Sub"),
    "sort": _sort,
    "stack": lambda call: ("Copy", list(call["tensors"]), {}),
    "sum": _reduction("ReduceSum"),
    "to": _conversion,
    "topk": lambda call: ("TopK", [call["self"]], {"k": call["k"], "axis": call["dim"]}),
    "t": _permutation(lambda call, rank: list(reversed(range(rank)))),
    "transpose": _permutation(_swapped),
    "tril": _unary("Trilu"),
    "triu": _unary("Trilu"),
    "_to_copy": _conversion,
    "where": _where,
}
_OWN = {"Copy", "GroupedMatMul", "Linear", "View"}  # of the domain "meshwright"


# ---- graphs -------------------------------------------------------------------------------------


def _element_type(dtype: Any) -> int:
    import torch
    types = {torch.float32: 1, torch.uint8: 2, torch.int8: 3, torch.int16: 5, torch.int32: 6,
             torch.int64: 7, torch.bool: 9, torch.float16: 10, torch.float64: 11,
             torch.bfloat16: 16}
    if dtype not in types:
        raise ValueError(f"tensors of {dtype} are not supported")
    return types[dtype]


class Writer:
    """The graph of a program of torch.export as a GraphProto."""

    def __init__(self, program: Any):
        self.program = program
        self.graph = bytearray()
        self.scalars: dict[Any, str] = {}
        self.names: dict[Any, list[str]] = {}  # tensors of nodes

    def bytes(self) -> bytes:
        self._add_inputs()
        for node in self.program.graph.nodes:
            if node.op == "call_function":
                self._add_call(node)
        opset = _sized(8, _number(2, 23)) + _sized(8, _sized(1, "meshwright") + _number(2, 1))
        return (_number(1, 10) + _sized(2, "meshwright.export_graph") + opset +
                _sized(7, bytes(self.graph)))

    def _add_inputs(self) -> None:
        signature = self.program.graph_signature
        trained = set(signature.inputs_to_parameters)
        buffers = {*signature.inputs_to_buffers, *signature.inputs_to_lifted_tensor_constants}
        for node in self.program.graph.nodes:
            if node.op != "placeholder" or not hasattr(node.meta.get("val"), "shape"):
                continue
            value = node.meta["val"]
            kind, shape = _element_type(value.dtype), self._sizes(node, value)
            self.names[node] = [node.name]
            if node.name in trained:
                dims = b"".join(_number(1, size) for size in shape)
                self.graph += _sized(5, dims + _number(2, kind) + _sized(8, node.name))
            elif node.name in buffers:
                self._add_buffer(node.name, kind, shape)
            else:
                self.graph += _sized(11, _sized(1, node.name) + _sized(2, _type(kind, shape)))

    def _add_buffer(self, name: str, kind: int, shape: list[int]) -> None:
        """A tensor that is not trained: the result of a constant of its shape."""
        tensor = b"".join(_number(1, size) for size in shape) + _number(2, kind)
        attribute = _sized(1, "value") + _sized(5, tensor)
        self.graph += _sized(1, _sized(2, name) + _sized(3, name) + _sized(4, "Constant") +
                             _sized(5, attribute))

    def _sizes(self, node: Any, value: Any) -> list[int]:
        try:
            return [int(size) for size in value.shape]
        except Exception as error:  # a symbolic size without a value
            raise ValueError(f"node '{node.name}' has a dynamic shape {tuple(value.shape)}; "
                             "export it with fixed sizes") from error

    def _scalar(self, value: Any) -> str:
        name = f"scalar:{value}"
        if name not in self.scalars:
            self.scalars[name] = name
            self._add_buffer(name, FLOAT, [])
        return name

    def _inputs(self, nodes: Iterable[Any]) -> list[str]:
        names = []
        for item in nodes:
            if item is None:
                names.append("")
            elif hasattr(item, "op"):
                names.append(self.names[item][0])
            else:
                names.append(self._scalar(item))
        while names and not names[-1]:
            names.pop()
        return names

    def _add_call(self, node: Any) -> None:
        target = getattr(node.target, "_schema", None)
        if target is None:  # an item of a tuple
            source, item = node.args[:2]
            self.names[node] = [self.names[source][item]]
            return
        value = node.meta.get("val")
        values = value if isinstance(value, (list, tuple)) else [value]
        if not any(hasattr(v, "shape") for v in values):
            return  # an assertion
        outputs = [f"{node.name}:{i}" if len(values) > 1 else node.name
                   for i in range(len(values))]
        self.names[node] = outputs
        for name, output in zip(outputs, values):
            if hasattr(output, "shape"):
                info = _sized(1, name) + _sized(2, _type(_element_type(output.dtype),
                                                         self._sizes(node, output)))
                self.graph += _sized(13, info)
        name = target.name.split("::")[-1]
        self._add_node(node, name, outputs)

    def _add_node(self, node: Any, name: str, outputs: list[str]) -> None:
        call = Call(node)
        tensors = [item for item in node.all_input_nodes if item in self.names]
        if name in ("lstm", "gru", "rnn_tanh", "rnn_relu"):
            return self._add_recurrent(call, name, outputs)
        translate = OPERATORS.get(name) or OPERATORS.get(name.rstrip("_"))
        try:
            if name in _CONSTANTS or (translate is None and not tensors):
                return self._add_constant(node, outputs)
            operator, inputs, attributes = (translate(call) if translate
                                            else (f"aten.{name}", tensors, {}))
        except (Unknown, KeyError):
            operator, inputs, attributes = f"aten.{name}", tensors, {}
        domain = "meshwright" if operator in _OWN else "" if "." not in operator else "torch"
        self._write(operator, domain, node.name, self._inputs(inputs), outputs, attributes)

    def _add_constant(self, node: Any, outputs: list[str]) -> None:
        """Made of sizes alone, such as positions."""
        value = node.meta["val"]
        tensor = b"".join(_number(1, size) for size in self._sizes(node, value))
        tensor += _number(2, _element_type(value.dtype))
        attribute = _sized(1, "value") + _sized(5, tensor)
        self.graph += _sized(1, _sized(2, outputs[0]) + _sized(3, node.name) +
                             _sized(4, "Constant") + _sized(5, attribute))

    def _write(self, operator: str, domain: str, name: str, inputs: list[str], outputs: list[str],
               attributes: dict[str, Any]) -> None:
        content = b"".join(_sized(1, text) for text in inputs)
        content += b"".join(_sized(2, text) for text in outputs)
        content += _sized(3, name) + _sized(4, operator)
        content += b"".join(_sized(5, _attribute(*item)) for item in attributes.items())
        self.graph += _sized(1, content + (_sized(7, domain) if domain else b""))

    def _add_recurrent(self, call: Call, name: str, outputs: list[str]) -> None:
        """One node of ONNX per layer; both directions of a layer are one node."""
        directions = 2 if call["bidirectional"] else 1
        per_direction = 4 if call["has_biases"] else 2
        batch_first = bool(call["batch_first"])
        size = list(_shape(call["input"]))
        source = self._inputs([call["input"]])[0]
        for layer in range(call["num_layers"]):
            first = layer * directions * per_direction
            own = [call["params"][first + d * per_direction:][:per_direction]
                   for d in range(directions)]
            prefix = f"{call.node.name}.{layer}"
            inputs = [source, *(self._stack(f"{prefix}.w{part}", [each[part] for each in own])
                                for part in (0, 1))]
            if call["has_biases"]:
                biases = self._inputs([bias for each in own for bias in each[2:]])
                self._write("Concat", "", f"{prefix}.b", biases, [f"{prefix}.b"], {"axis": 0})
                inputs.append(f"{prefix}.b")
            self._write({"lstm": "LSTM", "gru": "GRU"}.get(name, "RNN"), "", prefix, inputs,
                        [f"{prefix}.y"], {"layout": int(batch_first)})
            is_last = layer == call["num_layers"] - 1
            source = outputs[0] if is_last else f"{prefix}.x"
            if not is_last:
                size[-1] = directions * _shape(own[0][1])[1]
                self._declare(source, FLOAT, size)
            self._write("View", "meshwright", f"{prefix}.x", [f"{prefix}.y"], [source], {})
        for state in outputs[1:]:
            self._write("Copy", "meshwright", state, [source], [state], {})

    def _stack(self, name: str, matrices: list[Any]) -> str:
        """The matrices as one tensor with a leading dimension."""
        views = []
        for i, matrix in enumerate(matrices):
            views.append(f"{name}.{i}")
            self._declare(views[-1], FLOAT, [1, *_shape(matrix)])
            self._write("View", "meshwright", views[-1], self._inputs([matrix]), [views[-1]], {})
        if len(views) == 1:
            return views[0]
        self._write("Concat", "", name, views, [name], {"axis": 0})
        return name

    def _declare(self, name: str, kind: int, shape: list[int]) -> None:
        self.graph += _sized(13, _sized(1, name) + _sized(2, _type(kind, shape)))


def graph_of(model: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any] | None = None) -> bytes:
    """The operators and shapes of `model`, called with `args` and `kwargs`, as ONNX."""
    import torch
    with torch.no_grad():
        program = torch.export.export(model, tuple(args), dict(kwargs or {}))
    return Writer(program).bytes()


def export_graph(model: Any, inputs: tuple[Any, ...], file: str | Path) -> None:
    """Writes the operators and shapes of `model`, called with `inputs`, to `file`."""
    Path(file).write_bytes(graph_of(model, inputs))


def _load(reference: str) -> tuple[Any, tuple[Any, ...]]:
    path, _, function = reference.rpartition(":")
    if not path or not function:
        sys.exit(f"error: invalid value '{reference}': expected FILE.py:FUNCTION")
    if not Path(path).is_file():
        sys.exit(f"error: cannot open '{path}': No such file")
    spec = importlib.util.spec_from_file_location("meshwright_exported_model", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if not hasattr(module, function):
        sys.exit(f"error: '{path}' has no function '{function}'")
    model, inputs = getattr(module, function)()
    return model, inputs


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m meshwright.export_graph", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", metavar="FILE.py:FUNCTION",
                        help="function that returns a torch.nn.Module and a tuple of inputs")
    parser.add_argument("-o", "--output", metavar="FILE", required=True,
                        help="write the graph to FILE")
    options = parser.parse_args(arguments)
    model, inputs = _load(options.model)
    export_graph(model, inputs, options.output)


if __name__ == "__main__":
    main()
