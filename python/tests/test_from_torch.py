"""Tests of meshwright.from_torch, which need the installed package and PyTorch."""

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import meshwright

HAS_PANDAS = importlib.util.find_spec("pandas") is not None
HAS_TORCH = importlib.util.find_spec("torch") is not None


class WithoutTorch(unittest.TestCase):
    def test_import_of_the_package_does_not_import_torch(self):
        code = "import meshwright, sys; sys.exit('torch' in sys.modules)"
        self.assertEqual(subprocess.run([sys.executable, "-c", code], check=False).returncode, 0)


@unittest.skipUnless(HAS_TORCH, "needs PyTorch")
class FromTorch(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        import torch

        class Net(torch.nn.Module):
            def __init__(self, device):
                super().__init__()
                self.layers = torch.nn.ModuleList(
                    torch.nn.Linear(1024, 1024, bias=False, device=device) for _ in range(4))

            def forward(self, x, scale=1.0):
                for layer in self.layers:
                    x = torch.relu(layer(x))
                return x * scale

        cls.torch, cls.Net = torch, Net
        cls.graph = meshwright.from_torch(Net("cpu"), (torch.randn(64, 1024),))

    def test_has_the_parameters_and_flops_of_the_model(self):
        """4 layers of 1024 x 1024 weights, for 64 rows."""
        model = self.graph.partition("dgx-a100", devices=1)["model"]
        self.assertEqual(model["parameters"], 4 * 1024**2)
        self.assertEqual(model["forward_flop"], 4 * 2 * 64 * 1024**2)

    def test_partition_is_that_of_the_program(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "model.onnx")
            self.graph.save(file)
            expected = subprocess.run(
                [os.environ["MESHWRIGHT_PROGRAM"], "partition", file, "--cluster", "dgx-a100",
                 "--devices", "4", "--microbatches", "8", "--json"], capture_output=True,
                check=True).stdout.decode()
        partition = self.graph.partition("dgx-a100", devices=4, microbatches=8)
        self.assertEqual(partition.json, expected)
        value = json.loads(expected)
        self.assertEqual(partition.step_time, value["step"]["step_ns"] / 1e9)
        self.assertEqual(partition.stages, value["stages"])
        self.assertIsNone(partition.infeasible)
        self.assertEqual(partition._repr_html_().count("<tr>"), 1 + len(value["stages"]))

    @unittest.skipUnless(HAS_PANDAS, "needs pandas")
    def test_to_pandas_has_a_row_per_stage(self):
        partition = self.graph.partition("dgx-a100", devices=2)
        self.assertEqual(len(partition.to_pandas()), len(partition.stages))

    def test_an_unknown_operator(self):
        torch = self.torch

        class Inverse(torch.nn.Module):
            def forward(self, x):
                return torch.linalg.inv(x) @ x

        graph = meshwright.from_torch(Inverse(), (torch.eye(8),))
        with self.assertRaises(meshwright.InputError) as caught:
            graph.partition("dgx-a100", devices=1)
        self.assertTrue(caught.exception.where.startswith("model.onnx"), caught.exception.where)
        self.assertIn("--unknown-operators", caught.exception.hint)
        partition = graph.partition("dgx-a100", devices=1, unknown_operators="memory-bound")
        self.assertEqual(len(partition.stages), 1)

    def test_inference(self):
        partition = self.graph.partition("dgx-a100", devices=2, inference=True)
        self.assertIsNone(partition.step_time)
        self.assertEqual(len(partition.stages), 2)

    def test_a_model_without_memory(self):
        graph = meshwright.from_torch(self.Net("meta"),
                                      (self.torch.randn(64, 1024, device="meta"),))
        self.assertEqual(graph.partition("dgx-a100", devices=2).json,
                         self.graph.partition("dgx-a100", devices=2).json)

    def test_a_causal_mask_halves_attention(self):
        """Two products of 2 x 4 heads, 64 x 64 scores and 16 elements, with 2 FLOP each."""
        torch = self.torch

        class Attention(torch.nn.Module):
            def __init__(self, causal):
                super().__init__()
                self.causal = causal

            def forward(self, x):
                positions = torch.arange(x.shape[-2])
                rows = positions[:, None]
                seen = positions[None, :] <= rows if self.causal else rows >= 0
                return torch.nn.functional.scaled_dot_product_attention(x, x, x, attn_mask=seen)

        flops = [meshwright.from_torch(Attention(causal), (torch.randn(2, 4, 64, 16),))
                 .partition("dgx-a100", devices=1)["model"]["forward_flop"]
                 for causal in (False, True)]
        whole = 2 * 2 * 4 * 64 * 64 * 16 * 2
        self.assertEqual(flops, [whole, whole / 2])

    def test_keyword_arguments(self):
        scaled = meshwright.from_torch(self.Net("cpu"), (self.torch.randn(64, 1024),),
                                       {"scale": self.torch.randn(1024)})
        self.assertGreater(len(scaled.onnx), 0)
        self.assertNotEqual(scaled.onnx, self.graph.onnx)

    def test_the_graph_does_not_hold_weights(self):
        self.assertLess(len(self.graph.onnx), 4096)


if __name__ == "__main__":
    unittest.main()
