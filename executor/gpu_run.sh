#!/usr/bin/env bash
# Everything that is tried on a GPU, within ten minutes: see gpu_runbook.md. Called by ./dev gpu.
#
#   gpu_run.sh bundle          builds here what a box without our libraries needs: gpu_bundle/
#   gpu_run.sh run [--part kernels|plans|sanitizers] [FOLDER]
#                              on the box: from gpu_bundle/, else builds; results into FOLDER
set -uo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
bundle=$root/gpu_bundle
most_mib=64 # what boxes take in at once

say() { printf 'gpu: %s\n' "$*" >&2; }

# ---- bundle: programs, the plug-in and the libraries that other systems may not have ------------
make_bundle() {
  local build=$root/build/gpu library
  cmake --preset cuda -S "$root" -B "$build" >&2 || exit 1
  ninja -C "$build" meshwright kernels_test executor_test gpu_report nccl_smoke meshwright_cuda >&2 || exit 1
  [[ -f $build/bin/libmeshwright_cuda.so ]] || { say "no nvcc, so no plug-in: nothing to bundle"; exit 4; }
  rm -rf "$bundle" && mkdir -p "$bundle/bin" "$bundle/lib"
  for program in meshwright kernels_test executor_test gpu_report nccl_smoke libmeshwright_cuda.so; do
    strip -o "$bundle/bin/$program" "$build/bin/$program" && chmod +x "$bundle/bin/$program"
  done
  # All but the C library, which must be the box's own; the box needs one no older than ours.
  for library in $(ldd "$bundle"/bin/meshwright "$bundle"/bin/kernels_test "$bundle"/bin/executor_test "$bundle"/bin/gpu_report "$bundle"/bin/nccl_smoke |
    awk '$3 ~ /^\// {print $3}' | sort -u); do
    case $(basename "$library") in
      libc.so* | libm.so* | ld-linux* | libpthread* | libdl* | librt* | libcuda* | libcublas*) ;;
      *) cp -L "$library" "$bundle/lib/" ;;
    esac
  done
  git -C "$root" rev-parse --short HEAD >"$bundle/commit" 2>/dev/null
  du -sh "$bundle" >&2
  if (($(du -sm "$bundle" | cut -f1) > most_mib)); then
    say "the bundle is larger than $most_mib MiB"
    exit 1
  fi
}

# ---- run ------------------------------------------------------------------------------------------
# cuBLASLt, NCCL: of the toolkit, or of Python's wheels.
find_libraries() {
  local folders
  folders=$(python3 -c 'import glob, site, sys
for p in {*site.getsitepackages(), *sys.path}:
    print(*glob.glob(p + "/nvidia/*/lib"), sep="\n")' 2>/dev/null | sort -u | tr '\n' ':')
  export LD_LIBRARY_PATH=$bundle/lib:/usr/local/cuda/lib64:$folders${LD_LIBRARY_PATH:-}
}

# step NAME SECONDS COMMAND...: output into NAME.txt; one line of the summary. Goes on when it fails.
step() {
  local name=$1 limit=$2 status=0 start=$SECONDS
  shift 2
  # Functions of this script are started as programs, which timeout asks for: gpu_run.sh part NAME.
  timeout -k 5 "$limit" "$@" >"$out/$name.txt" 2>&1 || status=$?
  printf '| %s | %s | %d s |\n' "$name" "$( ((status)) && echo "failed: $status" || echo passed)" \
    $((SECONDS - start)) | tee -a "$out/summary.md" >&2
  return "$status"
}

run_tests() {
  "$bin/kernels_test" --gtest_filter='*cuda*:Cuda*' --gtest_brief=1 \
    --gtest_output="json:$out/kernels_test.json"
}

# Small models under all kinds of plans, on the device and on the host.
run_training() {
  "$bin/executor_test" --gtest_filter='*CudaTraining*' --gtest_brief=1 \
    --gtest_output="json:$out/executor_test.json"
}

# One case for each kind of access; the whole list would take too long under a checker.
run_checker() { # TOOL FILTER
  compute-sanitizer --tool "$1" --error-exitcode 9 --print-limit 20 \
    "$bin/kernels_test" --gtest_filter="$2" --gtest_brief=1
}

# Steps of GPT-2 124M on this GPU alone, by the wall clock: tensors stay there, kernels follow each
# other, tasks are timed by events.
measure_throughput() {
  "$bin/meshwright" run --model gpt2 --cluster this-machine --gpus 1 --dtype bf16 --seq 1024 \
    --global-batch 8 --steps 5 --device cuda --clock wall --json >"$out/throughput.json" &&
    tail -c 2000 "$out/throughput.json"
}

# Plans of one model on 1 to 16 ranks, all carried out on this one device: what was predicted beside
# what was measured.
validate() {
  local cal=$out/device.calib.json strategies=(
    "--gpus 1" "--gpus 2 --dp 2" "--gpus 2 --pp 2" "--gpus 2 --tp 2" "--gpus 4 --dp 2 --pp 2"
    "--gpus 4 --tp 2 --pp 2" "--gpus 4 --pp 4" "--gpus 8 --dp 2 --tp 2 --pp 2" "--gpus 8 --dp 8"
    "--gpus 8 --tp 4 --pp 2" "--gpus 16 --dp 4 --pp 4" "--gpus 16 --dp 2 --tp 4 --pp 2")
  export MESHWRIGHT_CALIBRATION=$cal
  # Small enough that starting values and copies do not take the time that is there.
  local model=$out/small-gpt.config.json
  printf '{"model_type": "gpt2", "n_layer": 4, "n_embd": 512, "n_head": 8, "n_positions": 256,
 "vocab_size": 8192}\n' >"$model"
  local number=0 strategy
  for strategy in "${strategies[@]}"; do
    number=$((number + 1))
    # shellcheck disable=SC2086
    timeout 60 "$bin/meshwright" run --model "$model" --cluster this-machine $strategy --dtype bf16 \
      --global-batch 16 --seq 256 --steps 3 --device cuda --json >"$out/plan-$number.json" || {
      printf '| %s | failed |\n' "$strategy"
      continue
    }
    # shellcheck disable=SC2086
    timeout 20 "$bin/meshwright" simulate --model "$model" --cluster this-machine $strategy \
      --dtype bf16 --global-batch 16 --seq 256 --json >"$out/predicted-$number.json"
    python3 - "$strategy" "$out/plan-$number.json" "$out/predicted-$number.json" <<'PY'
import json, sys

def find(data, *names):
    """The first of `names` anywhere in the JSON."""
    stack = [data]
    while stack:
        item = stack.pop(0)
        if isinstance(item, dict):
            for name in names:
                if isinstance(item.get(name), (int, float)):
                    return item[name]
            stack += item.values()
        elif isinstance(item, list):
            stack += item
    return None

measured = find(json.load(open(sys.argv[2])), "median_step_time_ns", "step_time_ns", "median_ns")
predicted = find(json.load(open(sys.argv[3])), "step_time_ns")
if not measured or not predicted:
    print(f"| {sys.argv[1]} | no times found |")
else:
    print(f"| {sys.argv[1]} | {predicted / 1e6:.3f} ms | {measured / 1e6:.3f} ms | "
          f"{100 * (predicted / measured - 1):+.1f} % |")
PY
  done
}

# Seconds for each step; with the five that a step may go beyond its limit before it is killed, every
# part ends within ten minutes.
run_kernels() { # TESTS TRAINING REPORT
  step tests "$1" "$0" part run_tests
  step training "$2" "$0" part run_training
  step report "$3" "$bin/gpu_report" -o "$out/kernels.json"
  return 0
}
run_plans() { # CALIBRATE VALIDATION THROUGHPUT NCCL TORCH
  step calibrate "$1" "$bin/meshwright" calibrate --device cuda --quick -o "$out/device.calib.json"
  step validation "$2" "$0" part validate
  step throughput "$3" "$0" part measure_throughput
  if [[ -x $bin/nccl_smoke ]]; then step nccl "$4" "$bin/nccl_smoke"; fi
  if python3 -c 'import torch' 2>/dev/null; then
    step torch "$5" python3 "$root/executor/gpu_torch.py" "$out/torch.json"
  fi
  return 0
}
run_sanitizers() { # MEMCHECK RACECHECK
  command -v compute-sanitizer >/dev/null || return 0
  step memcheck "$1" "$0" part run_checker memcheck '*Attention*cuda*:*Norm*cuda*'
  step racecheck "$2" "$0" part run_checker racecheck '*Blocks*cuda*:*Sorts*cuda*'
  return 0
}

run_all() { # PART FOLDER
  local which=$1
  out=${2:-$root/build/gpu-results}
  mkdir -p "$out"
  out=$(cd "$out" && pwd)
  bin=$bundle/bin
  if [[ ! -x $bin/kernels_test ]]; then
    say "no gpu_bundle/ here: building"
    make_bundle
  fi
  find_libraries
  export out bin
  {
    printf '# GPU run of %s\n\ncommit %s\n\n' "$(date -u '+%Y-%m-%d %H:%M UTC')" \
      "$(cat "$bundle/commit" 2>/dev/null)"
    nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.sm,clocks.max.sm \
      --format=csv 2>&1
    printf '\n| step | result | time |\n|---|---|---|\n'
  } >"$out/summary.md"
  step doctor 15 "$bin/meshwright" doctor
  grep -q '^GPUs  *none' "$out/doctor.txt" && { cat "$out/doctor.txt" >&2; exit 4; }
  case $which in
    all) run_kernels 120 50 60 && run_plans 40 90 30 30 40 && run_sanitizers 35 25 ;;
    kernels) run_kernels 240 150 150 ;;
    plans) run_plans 100 240 60 60 90 ;;
    sanitizers) run_sanitizers 280 280 ;;
  esac
  {
    for part in report validation throughput torch; do
      printf '\n## %s\n\n' "$part"
      cat "$out/$part.txt" 2>/dev/null
    done
  } >>"$out/summary.md"
  cat "$out/summary.md"
}
case ${1:-run} in
  bundle) make_bundle ;;
  run)
    shift
    which=all
    if [[ ${1:-} == --part ]]; then
      which=${2:-}
      shift 2 || shift
    fi
    case $which in
      all | kernels | plans | sanitizers) run_all "$which" "${1:-}" ;;
      *)
        say "--part kernels, plans or sanitizers, not '$which'"
        exit 2
        ;;
    esac
    ;;
  part) shift && "$@" ;; # one function, for step()
  *)
    say "bundle or run, not '$1'"
    exit 2
    ;;
esac
