"""`./dev gpu` with the real program on an emulated GPU: every step that works without CUDA's tools.

usage: gpu_rehearsal_test.py FOLDER_OF_PROGRAMS PLUGIN CALIBRATION
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS, PLUGIN, CALIBRATION = (pathlib.Path(argument) for argument in sys.argv[1:])
STEPS = "doctor,throughput,validation"


class GpuRehearsal(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        (self.folder / "executor").mkdir()
        shutil.copy(ROOT / "executor/gpu_run.sh", self.folder / "executor")
        binaries = self.folder / "gpu_bundle/bin"
        binaries.mkdir(parents=True)
        (binaries / "meshwright").symlink_to(PROGRAMS / "meshwright")
        (binaries / "kernels_test").symlink_to("/bin/true")  # its presence means that the bundle is unpacked
        path = self.folder / "path"
        path.mkdir()
        (path / "nvidia-smi").write_text("#!/bin/sh\necho Emulated GPU\n")
        (path / "nvidia-smi").chmod(0o755)
        (path / "torch.py").write_text("raise ImportError\n")
        self.environment = dict(os.environ, MESHWRIGHT_CUDA_LIBRARY=str(PLUGIN), MESHWRIGHT_CALIBRATION=str(CALIBRATION),
                                MESHWRIGHT_GPU_REHEARSAL="1", MESHWRIGHT_GPU_JOBS="gpt2 1 8", PYTHONPATH=str(path),
                                PATH=f"{path}:{os.environ['PATH']}")

    def run_gpu(self, steps, **environment):
        out = self.folder / "out"
        run = subprocess.run([self.folder / "executor/gpu_run.sh", "run", "--steps", steps, out], text=True,
                             env=dict(self.environment, **environment), capture_output=True, check=False)
        return run, (out / "summary.md").read_text()

    def test_trains_and_predicts(self):
        run, summary = self.run_gpu(STEPS)
        self.assertEqual(run.returncode, 0, run.stderr + summary)
        for step in STEPS.split(","):
            self.assertIn(f"| {step} | passed |", summary)
        self.assertIn("gpt2, bf16, 1 x 8:", summary)
        plans = [line for line in summary.splitlines() if " --gpus " in line]
        self.assertEqual(len(plans), 3)
        self.assertTrue(all(line.endswith("% |") for line in plans), plans)
        self.assertIn("| gpt2, wall clock |", summary)

    def test_refuses_what_the_memory_of_the_gpu_does_not_hold(self):
        run = subprocess.run([PROGRAMS / "meshwright", *("run --model gpt2 --cluster dgx-h100 --gpus 1 --dtype bf16 "
                              "--micro-batch 1 --global-batch 1 --seq 8 --steps 1 --device cuda").split()],
                             env=self.environment, text=True, capture_output=True, check=False)
        self.assertEqual(run.returncode, 4, run.stderr)
        self.assertIn("but only 1 GiB are free on the GPU Emulated GPU", run.stderr)

    def test_says_that_the_plugin_is_missing(self):
        run, summary = self.run_gpu(STEPS, MESHWRIGHT_CUDA_LIBRARY="/no/such/plugin.so")
        self.assertEqual(run.returncode, 4)
        self.assertIn("| doctor | failed: exit status 4 |", summary)
        self.assertIn("cannot load the GPU plug-in", run.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
