"""`./dev gpu` with stub programs: what it says of steps that fail, hang or find no GPU.

usage: gpu_run_test.py
"""

import os
import pathlib
import shutil
import stat
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Of every program: BEHAVIOR has words such as "gpu_report=hang", the rest is what a step reads.
STUB = r"""#!/usr/bin/env bash
name=$(basename "$0")
for argument; do
  case $argument in --gtest_output=json:*) echo '{"result": "COMPLETED"}' >"${argument#*json:}" ;; esac
done
for word in $BEHAVIOR; do
  case $word in
    "$name=fail") exit 1 ;;
    "$name=hang") sleep 60 ;;
    "$name=pool") [[ ${MESHWRIGHT_CUDA_POOL:-} == own ]] || exit 1 ;;
    "$name=skip") for argument; do
        case $argument in --gtest_output=json:*) echo '"result": "SKIPPED"' >"${argument#*json:}" ;; esac
      done ;;
    "$name=missing") [[ $1 != doctor ]] || exit 4 ;;
  esac
done
[[ $name == meshwright ]] || exit 0
file=
while (($#)); do
  case $1 in
    -o) file=$2 ;;
    --activity) echo '{"traceEvents": [{"name": "k", "ph": "X", "ts": 0, "dur": 2, "args": {"step": 1}}]}' >"$2" ;;
  esac
  shift
done
text='{"step_time_ns": 2000000, "steps": [{"loss": 1.5, "step_time_ns": 2000000}],
  "step": {"predicted_ns": 98, "measured_ns": 100, "error": -0.02}, "by_kind": {}}'
if [[ -n $file ]]; then echo "$text" >"$file"; else echo "$text"; fi
"""

ALL = ("doctor tests training throughput report calibrate validation activity nccl memcheck racecheck").split()


class GpuRun(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)
        (self.folder / "executor").mkdir()
        for name in ("gpu_run.sh", "gpu_activity.py", "gpu_torch.py", "gpu_torch_train.py"):
            shutil.copy(ROOT / "executor" / name, self.folder / "executor")
        for name in ("meshwright", "kernels_test", "executor_test", "gpu_report", "nccl_smoke"):
            self.add_program("gpu_bundle/bin/" + name, STUB)
        self.add_program("path/nvidia-smi", "#!/bin/sh\necho 'NVIDIA Stub'\n")
        self.add_program("path/compute-sanitizer", "#!/bin/sh\nexit 0\n")
        (self.folder / "path" / "torch.py").write_text("raise ImportError\n")  # its steps need a GPU

    def add_program(self, name, text):
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(file.stat().st_mode | stat.S_IXUSR)

    def run_gpu(self, *arguments, behavior="", seconds=60, path=None):
        """Exit status, standard error, and the results of the steps."""
        environment = dict(os.environ, BEHAVIOR=behavior, MESHWRIGHT_GPU_SECONDS=str(seconds),
                           MESHWRIGHT_GPU_JOBS="gpt2 1 16", PYTHONPATH=str(self.folder / "path"),
                           PATH=path or f"{self.folder / 'path'}:{os.environ['PATH']}")
        out = self.folder / "out"
        run = subprocess.run([self.folder / "executor/gpu_run.sh", "run", *arguments, out], env=environment,
                             text=True, capture_output=True, check=False)
        summary = out / "summary.md"
        rows = [line.strip("| \n").split(" | ") for line in summary.read_text().splitlines()
                if line.count("|") == 4] if summary.exists() else []
        return run.returncode, run.stderr, {row[0]: row[1] for row in rows if row[0] in ALL}

    def test_runs_every_step_and_keeps_its_results(self):
        status, errors, steps = self.run_gpu()
        self.assertEqual(steps, dict.fromkeys(ALL, "passed"), errors)
        self.assertEqual(status, 0, errors)
        summary = (self.folder / "out/summary.md").read_text()
        self.assertIn("gpt2, bf16, 1 x 16: 2.00 ms/step, 8000 tokens/s", summary)
        self.assertIn("| small-gpt --gpus 16 --dp 2 --tp 4 --pp 2 | 0.000 / 0.000 ms |", summary)
        self.assertIn("| gpt2, wall clock | 2.000 / 2.000 ms |", summary)
        self.assertLessEqual(len(list((self.folder / "out").iterdir())), 8)

    def test_goes_on_after_a_failure_and_fails(self):
        status, errors, steps = self.run_gpu("--steps", "tests,report,training",
                                             behavior="kernels_test=pool gpu_report=fail")
        self.assertEqual(status, 1)
        self.assertIn("2 steps failed", errors)
        self.assertEqual(steps, {
            "tests": "failed: exit status 1, passes with MESHWRIGHT_CUDA_POOL=own",
            "report": "failed: exit status 1", "training": "passed"})

    def test_stops_steps_that_hang(self):
        status, _, steps = self.run_gpu("--steps", "report,tests", behavior="gpu_report=hang", seconds=17)
        self.assertEqual(status, 1)
        self.assertRegex(steps["report"], "failed: not finished after [5-9] s")
        self.assertEqual(steps["tests"], "not run: no time left")

    def test_takes_skipped_tests_for_failures(self):
        status, _, steps = self.run_gpu("--steps", "tests", behavior="kernels_test=skip")
        self.assertEqual((status, steps["tests"]), (1, "failed: exit status 1"))

    def test_needs_a_gpu_that_works(self):
        status, _, _ = self.run_gpu(behavior="meshwright=missing")
        self.assertEqual(status, 4)
        (self.folder / "path/nvidia-smi").unlink()
        if not os.path.exists("/dev/nvidiactl"):
            status, errors, _ = self.run_gpu(path="/usr/bin:/bin")
            self.assertEqual(status, 4)
            self.assertIn("no GPU found", errors)

    def test_names_the_steps_that_exist(self):
        status, errors, _ = self.run_gpu("--steps", "test")
        self.assertEqual(status, 2)
        self.assertIn("unknown step 'test': expected doctor tests", errors)


if __name__ == "__main__":
    unittest.main()
