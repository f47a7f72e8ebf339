"""
Tests of the installed package. MESHWRIGHT_PROGRAM names the program, whose output is the reference.

    MESHWRIGHT_PROGRAM=build/release/bin/meshwright python -m unittest discover python/tests
"""

import doctest
import gzip
import importlib.util
import json
import multiprocessing
import os
import pickle
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import warnings
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import meshwright

PROGRAM = os.environ["MESHWRIGHT_PROGRAM"]
GPT2 = {"model_type": "gpt2", "n_embd": 256, "n_layer": 4, "n_head": 4, "n_positions": 256,
        "vocab_size": 1000}
GPT2_LARGE = {**GPT2, "n_head": 12, "n_embd": 768}
JOB = dict(model="gpt2", cluster="dgx-a100", tp=2, pp=2, dp=2, global_batch=64, seq=1024)
JOB_FLAGS = ("--model gpt2 --cluster dgx-a100 --tp 2 --pp 2 --dp 2 --global-batch 64 "
             "--seq 1024").split()
# A search of several seconds, so that there is something to interrupt.
LONG_SEARCH = dict(model="gpt3-175b", cluster="dgx-a100", gpus=1024, global_batch=1536, seq=2048,
                   time_limit=60, threads=1, top=50)


# Eight points, of which those with tp=8 cannot be: 12 heads.
STUDY = dict(model=GPT2_LARGE, cluster="dgx-a100", over={"tp": [1, 2, 4, 8], "micro_batch": [1, 2]},
             gpus=8, global_batch=64, seq=256)
HAS_DASK = importlib.util.find_spec("distributed") is not None
HAS_NBCONVERT = importlib.util.find_spec("nbconvert") is not None
SOURCES = Path(__file__).parents[2]


def program(*arguments):
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, check=False)
    return done.stdout.decode()


def without_clock(plan_json):
    """The certificate of a search contains the seconds that it took."""
    return re.sub(r'"seconds": [0-9.e-]+', '"seconds": 0', plan_json)


class SameAsTheProgram(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def test_simulate(self):
        self.assertEqual(meshwright.simulate(**JOB).json, program("simulate", *JOB_FLAGS, "--json"))

    def test_simulate_a_published_run(self):
        run = "korthikanti-2022#P1605"
        self.assertEqual(meshwright.simulate(run).json, program("simulate", run, "--json"))

    def test_plan_and_plan_file(self):
        plans = meshwright.plan("gpt2", "dgx-a100", gpus=16, global_batch=64, seq=1024, top=3)
        file = self.folder / "program.plan.json"
        flags = "--model gpt2 --cluster dgx-a100 --gpus 16 --global-batch 64 --seq 1024 --top 3"
        expected = program("plan", *flags.split(), "--json", "-o", file)
        self.assertEqual(without_clock(plans.json), without_clock(expected))
        self.assertEqual(plans.plan_file, file.read_text())
        plans.save(self.folder / "python.plan.json")
        self.assertEqual((self.folder / "python.plan.json").read_bytes(), file.read_bytes())
        self.assertEqual(meshwright.simulate(plans).json, program("simulate", file, "--json"))

    def test_schedule(self):
        schedule = meshwright.schedule("zb-h1", stages=4, microbatches=8, tf=[1, 1, 2, 1], tb=1.5,
                                       tw=0.5)
        flags = "--name zb-h1 --stages 4 --microbatches 8 --tf 1,1,2,1 --tb 1.5 --tw 0.5 --json"
        self.assertEqual(schedule.json, program("schedule", *flags.split()))

    def test_fit(self):
        answer = meshwright.fit("llama-3.1-8b", "dgx-h100", gpus=1, seq=4096)
        flags = "--model llama-3.1-8b --cluster dgx-h100 --gpus 1 --seq 4096 --json"
        self.assertEqual(answer.json, program("fit", *flags.split()))

    def test_report(self):
        plans = meshwright.plan("gpt2", "dgx-a100", gpus=8, global_batch=64, seq=1024, top=1)
        plans.save(self.folder / "best.plan.json")
        plans.to_html(self.folder / "python.html")
        self.assertEqual((self.folder / "python.html").read_text(),
                         program("report", self.folder / "best.plan.json"))

    def test_sweep(self):
        sweep = meshwright.sweep("gpt2", "dgx-a100", {"pp": [1, 2], "global_batch": [32, 64]},
                                 gpus=8, seq=1024)
        flags = ("--model gpt2 --cluster dgx-a100 --over pp=1,2 --over global-batch=32,64 --gpus 8 "
                 "--seq 1024 --json")
        self.assertEqual(sweep.json, program("sweep", *flags.split()))

    def test_sweep_over_a_map(self):
        with ThreadPoolExecutor(2) as pool:
            for map_ in (map, pool.map):
                with self.subTest(map_):
                    self.assertEqual(meshwright.sweep(**STUDY, map=map_).json,
                                     meshwright.sweep(**STUDY).json)

    def test_sweep_over_processes(self):
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(2, context) as pool, context.Pool(2) as other:
            for map_ in (pool.map, other.map, other.imap):
                self.assertEqual(meshwright.sweep(**STUDY, map=map_).json,
                                 meshwright.sweep(**STUDY).json)

    @unittest.skipUnless(HAS_DASK, "needs dask[distributed]")
    def test_sweep_over_a_cluster_of_dask(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of Dask
            from dask.distributed import Client, LocalCluster

            with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, \
                    Client(cluster) as client:
                futures = []

                def on_the_cluster(function, parts):
                    futures.extend(client.map(function, parts))
                    return futures

                swept = meshwright.sweep(**STUDY, map=on_the_cluster)
                holders = client.who_has(futures)
        self.assertEqual(swept.json, meshwright.sweep(**STUDY).json)
        self.assertEqual(len(holders), 8)
        self.assertTrue(all(holders.values()), holders)

    def test_validate(self):
        self.assertEqual(meshwright.validate("korthikanti-2022").json,
                         program("validate", "korthikanti-2022", "--json"))

    def test_timeline_and_compare(self):
        mine, other = self.folder / "python.pftrace", self.folder / "program.pftrace"
        meshwright.simulate(**JOB).to_perfetto(mine)
        program("simulate", *JOB_FLAGS, "-o", other)
        self.assertEqual(mine.read_bytes(), other.read_bytes())

        job = ("--model", self.write_model(), *"--cluster cpu-laptop --pp 2 --dtype fp32 "
               "--micro-batch 1 --global-batch 4 --seq 32".split())
        predicted, measured = self.folder / "predicted.pftrace", self.folder / "measured.pftrace"
        program("simulate", *job, "--all-ranks", "-o", predicted)
        program("run", *job, "--steps", "2", "-o", measured)
        comparison = meshwright.compare(predicted, measured, max_error="1000%")
        self.assertEqual(comparison.json, program("compare", predicted, measured,
                                                  "--max-error", "1000%", "--json"))
        self.assertIsInstance(comparison.error, float)

    def write_model(self):
        path = self.folder / "gpt2.json"
        path.write_text(json.dumps(GPT2))
        return path

    def test_model_as_dict_and_as_configuration_object(self):
        class Config:
            def to_dict(self):
                return GPT2

        job = dict(cluster="dgx-a100", dp=2, global_batch=4, seq=256)
        by_file = meshwright.simulate(model=self.write_model(), **job).json
        self.assertEqual(meshwright.simulate(model=GPT2, **job).json, by_file)
        self.assertEqual(meshwright.simulate(model=Config(), **job).json, by_file)


class Results(unittest.TestCase):
    def test_to_dict_is_a_copy(self):
        step = meshwright.simulate(**JOB)
        step.to_dict()["gpus"] = 0
        self.assertEqual(step.to_dict(), json.loads(step.json))

    def test_timeline_of_a_model_without_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "t.pftrace")
            meshwright.simulate(model=GPT2, cluster="dgx-a100", dp=1, global_batch=4,
                                seq=256).to_perfetto(path)
            self.assertGreater(path.stat().st_size, 1000)

    def test_html_has_a_row_per_plan_and_escapes_text(self):
        plans = meshwright.plan("gpt2", "dgx-a100", gpus=8, global_batch=64, seq=1024, top=3)
        self.assertEqual(plans._repr_html_().count("<tr>"), 1 + 3)
        self.assertIn("<td>DP8</td>", plans._repr_html_())
        sweep = meshwright.sweep("gpt2", "dgx-a100", {"schedule": ["1f1b"], "tp": [1, 5]}, gpus=8,
                                 global_batch=64, seq=1024)
        header, first, second = sweep._repr_html_().split("<tr>")[1:]
        self.assertEqual(header.count("<th>"), first.count("<td>"))
        self.assertEqual(header.count("<th>"), second.count("<td>"))
        self.assertIn("8 is not a multiple of tp 5", second)

    def test_html_has_all_columns_though_the_first_combination_fails(self):
        sweep = meshwright.sweep("gpt2", "dgx-a100", {"tp": [5, 1]}, gpus=8, global_batch=64, seq=1024)
        header, first, second = sweep._repr_html_().split("<tr>")[1:]
        self.assertIn("<th>step</th>", header)
        self.assertEqual(header.count("<th>"), first.count("<td>"))
        self.assertEqual(header.count("<th>"), second.count("<td>"))

    def test_html_has_the_timeline_of_every_pipeline_rank(self):
        html = meshwright.simulate(**JOB, straggler=["0:1.2", "1:1.1"])._repr_html_()
        self.assertEqual(html.count("<svg "), 1)
        self.assertEqual(html.count(">rank "), JOB["pp"])

    def test_html_of_a_model_without_a_file(self):
        step = meshwright.simulate(model=GPT2, cluster="dgx-a100", dp=1, global_batch=4, seq=256)
        self.assertIn("<svg ", step._repr_html_())

    def test_to_pandas_has_a_row_per_point(self):
        table = meshwright.sweep("gpt2", "dgx-a100", {"tp": [1, 2, 4]}, gpus=8, global_batch=64,
                                 seq=1024).to_pandas()
        self.assertEqual(list(table["tp"]), [1, 2, 4])
        self.assertEqual(list(table["strategy.dp"]), [8, 4, 2])
        table = meshwright.sweep("gpt2", "dgx-a100", {"schedule": ["1f1b", "gpipe"], "tp": [5]}, gpus=8,
                                 global_batch=64, seq=1024).to_pandas()
        self.assertEqual(list(table["schedule"]), ["1f1b", "gpipe"])
        self.assertIn("8 is not a multiple of tp 5", table["problem"][0])

    def test_no_plan_fits(self):
        plans = meshwright.plan("llama-3.1-405b", "dgx-a100", gpus=8, global_batch=8, seq=8192)
        self.assertIsNone(plans.best)
        self.assertIn("GiB", plans.infeasible["reason"])
        with self.assertRaisesRegex(ValueError, "no plan fits"):
            plans.save("never-written.json")


def trace_of_a_linear_layer():
    """Two steps of one GEMM of [64, 32] x [32, 128] on an H100, as PyTorch's profiler writes them."""
    events = []
    for step in range(2):
        start = 1000 * step
        launch, kernel = 100 + 10 * step, 200 + start
        events += [
            {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 9, "tid": 9,
             "ts": start, "dur": 1000},
            {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 9, "tid": 9, "ts": start + 100,
             "dur": 20, "args": {"External id": launch, "Input Dims": [[64, 32], [32, 128]],
                                 "Input type": ["c10::BFloat16", "c10::BFloat16"],
                                 "Sequence number": 8 + step, "Fwd thread id": 0}},
            {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 9,
             "ts": start + 110, "dur": 5, "args": {"External id": launch, "correlation": launch}},
            {"ph": "X", "cat": "kernel", "name": "nvjet_hsh_64x64_64x10_2x1_v_bz_TNT", "pid": 0,
             "tid": 7, "ts": kernel, "dur": 50,
             "args": {"External id": launch, "device": 0, "stream": 7, "correlation": launch}},
        ]
    return {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3"}],
            "traceEvents": events}


class SweepsOverWorkers(unittest.TestCase):
    def test_every_part_is_a_task(self):
        tasks = []

        def record(function, items):
            tasks.extend(items)
            return [function(item) for item in items]

        sweep = meshwright.sweep(**STUDY, map=record)
        self.assertEqual([task.part for task in tasks], [f"{i}/8" for i in range(1, 9)])
        self.assertEqual([task.options["threads"] for task in tasks], [1] * 8)
        self.assertEqual(pickle.loads(pickle.dumps(tasks)), tasks)
        self.assertEqual(len(sweep["points"]), 8)
        self.assertIsNone(sweep["points"][6]["plan"])

    def test_what_workers_computed_is_used(self):
        """A worker that reports another step time changes the result."""
        def change(function, items):
            return [re.sub(r'"step_time_ps":[0-9]+', '"step_time_ps":7000000000000', function(item))
                    for item in items]

        sweep = meshwright.sweep(**STUDY, map=change)
        self.assertEqual(sweep["points"][0]["plan"]["step_time_ns"], 7e9)

    def test_an_error_of_a_worker_cancels_the_others(self):
        futures = [Future() for _ in range(8)]
        futures[0].set_exception(meshwright.InputError([("a", "b", "c")]))
        with self.assertRaises(meshwright.InputError):
            meshwright.sweep(**STUDY, map=lambda function, items: futures)
        self.assertTrue(all(future.cancelled() for future in futures[1:]))

    def test_options_of_parts_are_refused(self):
        with self.assertRaises(TypeError):
            meshwright.sweep(**STUDY, part="1/2")
        with self.assertRaises(TypeError):
            meshwright.sweep(**STUDY, map=map, points="study.points")

    def test_an_invalid_option(self):
        with self.assertRaises(meshwright.UsageError):
            meshwright.sweep(**STUDY, map=map, zero=9)


class TrainingScripts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.trace = self.folder / "trace.json.gz"
        with gzip.open(self.trace, "wt") as file:
            json.dump(trace_of_a_linear_layer(), file)

    def test_calibrate_from_trace_is_import(self):
        measured = meshwright.calibrate_from_trace(self.trace)
        file = self.folder / "trace.calib.json"
        expected = json.loads(program("import", self.trace, "--json", "-o", file))
        self.assertEqual(measured.calibration_file, file.read_text())
        self.assertEqual(measured.to_dict(), {**expected, "file": "trace.calib.json"})
        self.assertEqual(measured.step_time, 0.001)  # a step lasts 1000 us
        measured.save(self.folder / "saved.calib.json")
        self.assertEqual((self.folder / "saved.calib.json").read_text(), file.read_text())

    def test_a_calibration_is_an_argument(self):
        measured = meshwright.calibrate_from_trace(self.trace)
        job = dict(model="gpt2", cluster="dgx-h100", dp=1, global_batch=4, seq=256)
        step = meshwright.simulate(**job, calibration=measured)
        measured.save(self.folder / "saved.calib.json")
        self.assertEqual(step["step_time_ns"], meshwright.simulate(
            **job, calibration=self.folder / "saved.calib.json")["step_time_ns"])
        self.assertNotEqual(step["step_time_ns"], meshwright.simulate(**job)["step_time_ns"])

    def test_an_invalid_trace(self):
        broken = self.folder / "broken.json"
        broken.write_text("{}")
        with self.assertRaises(meshwright.InputError):
            meshwright.calibrate_from_trace(broken)

    def timer(self, predicted, times, **options):
        lines = []
        timer = meshwright.StepTimer(predicted, log=lines.append, clock=iter(times).__next__,
                                     **options)
        return timer, lines

    def test_prints_the_mean_of_several_steps(self):
        # The clock starts with the first call; then 1, 2, 3 and 2 s: means of 1.5 s and 2.5 s.
        timer, lines = self.timer(2.0, [10, 11, 13, 16, 18], every=2, tolerance=0.5)
        for _ in range(5):
            timer()
        self.assertEqual(lines, ["step 2: measured 1.5 s, predicted 2 s (-25.0 %)",
                                 "step 4: measured 2.5 s, predicted 2 s (+25.0 %)"])

    def test_warns_each_time_that_steps_leave_the_range(self):
        # 2 s is inside of 1.8 s to 2.2 s; 3, 3 and 1 s are outside; 2 s again; 3 s is the second time.
        timer, _ = self.timer(2.0, [0, 2, 5, 8, 9, 11, 14], every=1)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(7):
                timer()
        self.assertEqual([str(one.message) for one in caught],
                         ["the step takes 3 s and leaves the predicted range of 1.8 s to 2.2 s"] * 2)

    def test_takes_predictions(self):
        step = meshwright.simulate(**JOB)
        plans = meshwright.plan("gpt2", "dgx-a100", gpus=8, global_batch=64, seq=1024, top=1)
        self.assertEqual(meshwright.StepTimer(step).predicted, step.step_time)
        self.assertEqual(meshwright.StepTimer(plans).predicted, plans.best["step_time_ns"] / 1e9)
        low, high = meshwright.StepTimer(step, tolerance=0.25).range
        self.assertAlmostEqual(low / step.step_time, 0.75)
        self.assertAlmostEqual(high / step.step_time, 1.25)

    def test_uses_the_range_of_published_runs(self):
        step = meshwright.simulate("korthikanti-2022#P1605")
        validated = step["step_time_range"]
        self.assertEqual(meshwright.StepTimer(step).range,
                         (validated["p10_ns"] / 1e9, validated["p90_ns"] / 1e9))

    def test_refuses_invalid_arguments(self):
        for arguments in (dict(every=0), dict(tolerance=0)):
            with self.assertRaises(ValueError):
                meshwright.StepTimer(1.0, **arguments)
        with self.assertRaises(ValueError):
            meshwright.StepTimer(0.0)


class Errors(unittest.TestCase):
    def test_says_where_what_and_how_to_fix_it(self):
        with self.assertRaises(meshwright.InputError) as caught:
            meshwright.simulate(model="lama-3.1-70b", cluster="dgx-a100", tp=8, global_batch=8,
                                seq=2048)
        self.assertIn("lama-3.1-70b", caught.exception.what)
        self.assertIn("llama-3.1-70b", caught.exception.hint)
        self.assertIsInstance(caught.exception, ValueError)

    def test_unknown_option(self):
        with self.assertRaises(meshwright.UsageError) as caught:
            meshwright.simulate(**JOB, sequence_paralel=True)
        self.assertEqual(caught.exception.where, "--sequence-paralel")
        self.assertEqual(caught.exception.hint, "did you mean '--sequence-parallel'?")

    def test_names_no_temporary_file(self):
        with self.assertRaises(meshwright.InputError) as caught:
            meshwright.simulate(model={**GPT2, "n_layer": 0}, cluster="dgx-a100", global_batch=4,
                                seq=256)
        self.assertTrue(caught.exception.where.startswith("gpt2.json#/n_layer"),
                        caught.exception.where)

    def test_a_file_that_cannot_be_written(self):
        with self.assertRaises(meshwright.EnvironmentFailure) as caught:
            meshwright.simulate(**JOB).to_perfetto("/proc/none/t.pftrace")
        self.assertIsInstance(caught.exception, OSError)

    def test_survives_pickling_for_worker_processes(self):
        error = meshwright.InputError([("a", "b", "c"), ("d", "e", "")])
        again = pickle.loads(pickle.dumps(error))
        self.assertEqual((str(again), again.problems), (str(error), error.problems))

    def test_model_of_an_unknown_type(self):
        with self.assertRaises(TypeError):
            meshwright.plan(3, "dgx-a100")


class Process(unittest.TestCase):
    def test_ctrl_c_interrupts_and_the_next_call_works(self):
        # Shells start background jobs with SIGINT ignored.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, before)
        timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        started = time.monotonic()
        with self.assertRaises(KeyboardInterrupt):
            meshwright.plan(**LONG_SEARCH)
        self.assertLess(time.monotonic() - started, 10)
        self.assertTrue(meshwright.simulate(**JOB).fits)

    def test_other_threads_run_meanwhile(self):
        with ThreadPoolExecutor(1) as pool:
            search = pool.submit(meshwright.plan, "gpt3-175b", "dgx-a100", gpus=1024,
                                 global_batch=1536, seq=2048, time_limit=2)
            turns = 0
            while not search.done():
                turns += 1
                time.sleep(0.001)
        self.assertGreater(turns, 20)

    def test_calls_of_several_threads_give_the_same(self):
        with ThreadPoolExecutor(4) as pool:
            results = list(pool.map(lambda _: meshwright.simulate(**JOB).json, range(16)))
        self.assertEqual(set(results), {meshwright.simulate(**JOB).json})

    def test_keeps_no_memory(self):
        def calls(count):
            for _ in range(count):
                meshwright.simulate(model="gpt2", cluster="dgx-a100", dp=1, global_batch=8, seq=256)

        calls(50)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        calls(int(os.environ.get("MESHWRIGHT_CALLS", "300")))
        kept = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        self.assertLess(kept, 2048, "KiB")

    def test_import_takes_at_most_150_ms(self):
        code = "import time; t = time.process_time(); import meshwright; print(time.process_time() - t)"
        times = [float(subprocess.check_output([sys.executable, "-c", code])) for _ in range(3)]
        self.assertLess(min(times), 0.15)


class Documents(unittest.TestCase):
    """Examples run as they stand, in an empty directory."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def test_examples_of_the_readmes(self):
        for document in ("README.md", "python/README.md"):
            examples = re.findall("```python\n(.*?)```", (SOURCES / document).read_text(), re.DOTALL)
            self.assertTrue(examples, document)
            for example in examples:
                with self.subTest(document):
                    subprocess.run([sys.executable, "-W", "error", "-c", example], cwd=self.folder,
                                   check=True, stdout=subprocess.DEVNULL)
        self.assertIn("<svg", (self.folder / "plan.html").read_text())

    @unittest.skipUnless(HAS_NBCONVERT, "needs nbconvert and ipykernel")
    def test_the_notebook(self):
        shutil.copy(SOURCES / "python/examples/plan.ipynb", self.folder)
        subprocess.run([sys.executable, "-m", "nbconvert", "--to", "notebook", "--execute",
                        "--inplace", "plan.ipynb"], cwd=self.folder, check=True, capture_output=True)
        notebook = json.loads((self.folder / "plan.ipynb").read_text())
        shown = ["".join(output["data"].get("text/html", "")) for cell in notebook["cells"]
                 for output in cell.get("outputs", []) if "data" in output]
        plans, step, table = shown
        self.assertEqual(plans.count("<tr>"), 1 + 5)
        self.assertIn("<svg", step)
        self.assertIn("<th>16384</th>", table)
        self.assertIn("<svg", (self.folder / "plan.html").read_text())


def load_tests(loader, tests, pattern):
    for module in ("meshwright", "meshwright._calls", "meshwright._training"):
        __import__(module)
        tests.addTests(doctest.DocTestSuite(sys.modules[module]))
    return tests
