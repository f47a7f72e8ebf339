"""
Tests of meshwright.export_graph; those that export a model need PyTorch.

    MESHWRIGHT_PROGRAM=build/release/bin/meshwright python -m unittest discover python/tests
"""

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

# By its path: the module needs neither the package nor its extension.
FILE = Path(__file__).resolve().parents[1] / "meshwright" / "export_graph.py"
SPEC = importlib.util.spec_from_file_location("export_graph", FILE)
export_graph = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(export_graph)

HAS_TORCH = importlib.util.find_spec("torch") is not None
MODEL = '''
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(6, 10)
        self.norm = torch.nn.LayerNorm(10)
        self.second = torch.nn.Linear(10, 4, bias=False)
    def forward(self, x):
        x = torch.relu(self.norm(self.first(x))).view(2, 3, 10)
        return self.second(x.transpose(0, 1).permute(1, 0, -1).movedim(0, 0))
def make():
    return Net(), (torch.randn(6, 6),)
'''


class Encoding(unittest.TestCase):
    """Values of the protobuf documentation (protobuf.dev/programming-guides/encoding)."""

    def test_numbers_and_texts(self):
        self.assertEqual(export_graph._number(1, 150), bytes.fromhex("089601"))
        self.assertEqual(export_graph._sized(2, "testing"), bytes.fromhex("120774657374696e67"))
        self.assertEqual(export_graph._number(1, -2), bytes.fromhex("08feffffffffffffffff01"))

    def test_attributes_of_all_kinds(self):
        self.assertEqual(export_graph._attribute("a", 3), bytes.fromhex("0a01611803"))
        self.assertEqual(export_graph._attribute("a", [1, 2]), bytes.fromhex("0a016140014002"))
        self.assertEqual(export_graph._attribute("a", "x"), bytes.fromhex("0a01612201") + b"x")
        self.assertEqual(export_graph._attribute("a", 1.0), bytes.fromhex("0a0161150000803f"))


class CommandLine(unittest.TestCase):
    def run_module(self, *arguments):
        return subprocess.run([sys.executable, FILE, *arguments], capture_output=True, text=True,
                              check=False)

    def test_names_what_is_missing(self):
        done = self.run_module("nothing.py:make", "-o", "x.onnx")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr, "error: cannot open 'nothing.py': No such file\n")
        done = self.run_module("nothing", "-o", "x.onnx")
        self.assertIn("invalid value 'nothing': expected FILE.py:FUNCTION", done.stderr)

    @unittest.skipUnless(HAS_TORCH, "needs PyTorch")
    @unittest.skipUnless("MESHWRIGHT_PROGRAM" in os.environ, "needs MESHWRIGHT_PROGRAM")
    def test_graph_has_the_parameters_and_flops_of_the_model(self):
        """6 x 10 + 10, 2 x 10 and 10 x 4 weights; 6 rows through 60 and 40 of them."""
        with tempfile.TemporaryDirectory() as folder:
            source, graph = Path(folder, "net.py"), Path(folder, "net.onnx")
            source.write_text(MODEL)
            done = self.run_module(f"{source}:make", "-o", str(graph))
            self.assertEqual(done.returncode, 0, done.stderr)
            report = subprocess.run([os.environ["MESHWRIGHT_PROGRAM"], "partition", graph,
                                     "--cluster", "dgx-a100", "--devices", "1", "--json"],
                                    capture_output=True, check=True).stdout
        report = json.loads(report)
        self.assertEqual(report["model"]["parameters"], 70 + 20 + 40)
        self.assertEqual(report["model"]["forward_flop"], 2 * 6 * (60 + 40))
        self.assertEqual(report["model"]["backward_flop"], 2 * 6 * (60 + 2 * 40))
        self.assertEqual(report["stages"][0]["nodes"],
                         ["linear", "layer_norm", "relu", "view", "transpose", "permute", "movedim",
                          "linear_1"])


if __name__ == "__main__":
    unittest.main()
