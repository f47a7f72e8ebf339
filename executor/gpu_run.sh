#!/usr/bin/env bash
# Runs all GPU tests and measurements within ten minutes, see gpu_runbook.md. Called by ./dev gpu.
#
#   gpu_run.sh bundle          build gpu_bundle/ for GPU machines without our libraries
#   gpu_run.sh run [--part kernels|plans|sanitizers] [DIRECTORY]
#                              on the GPU machine: run from gpu_bundle/ (built if missing)
#
# DIRECTORY gets at most seven files, updated after every step, so that an aborted run keeps its
# results: summary.md, the JSON reports, the device file, and an archive of all logs.
set -uo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
bundle=$root/gpu_bundle
most_mib=64 # upload limit

say() { printf 'gpu: %s\n' "$*" >&2; }

# ---- bundle: programs, the plug-in and libraries that other systems may lack ---------------------
make_bundle() {
  local build=$root/build/release library program
  local programs=(meshwright kernels_test executor_test gpu_report nccl_smoke)
  # The release build targets Hopper; other architectures get a separate build.
  [[ -z ${MESHWRIGHT_CUDA_ARCHITECTURES:-} ]] || build=$root/build/gpu
  cmake --preset release -S "$root" -B "$build" \
    "-DMESHWRIGHT_CUDA_ARCHITECTURES=${MESHWRIGHT_CUDA_ARCHITECTURES:-90a-real}" >&2 || exit 1
  ninja -C "$build" "${programs[@]}" meshwright_cuda >&2 || exit 1
  [[ -f $build/bin/libmeshwright_cuda.so ]] || { say "cannot build the GPU plug-in: nvcc not found"; exit 4; }
  rm -rf "$bundle" && mkdir -p "$bundle/bin" "$bundle/lib"
  for program in "${programs[@]}" libmeshwright_cuda.so; do
    strip -o "$bundle/bin/$program" "$build/bin/$program" && chmod +x "$bundle/bin/$program"
  done
  # Except the C library, which must be the target's own and at least as new as ours.
  for library in $(for program in "${programs[@]}"; do ldd "$bundle/bin/$program"; done |
    awk '$3 ~ /^\// {print $3}' | sort -u); do
    case $(basename "$library") in
      libc.so* | libm.so* | ld-linux* | libpthread* | libdl* | librt* | libcuda* | libcublas*) ;;
      *) cp -L "$library" "$bundle/lib/" ;;
    esac
  done
  git -C "$root" rev-parse --short HEAD >"$bundle/commit" 2>/dev/null
  check_needs
  # Compressed to a third (oneDNN alone has 38 MiB). The sources are uploaded with it.
  tar -C "$bundle" -czf "$bundle/bundle.tar.gz" bin lib commit && rm -rf "${bundle:?}/bin" "${bundle:?}/lib"
  local kib=$(($(du -sk "$bundle" | cut -f1) + $(git -C "$root" ls-files -z | (cd "$root" && xargs -0 du -ck) | tail -1 | cut -f1)))
  say "bundle and sources: $((kib / 1024)) MiB"
  if ((kib > most_mib * 1024)); then
    say "exceeds the limit of $most_mib MiB"
    exit 1
  fi
}

# All dependencies must be in the bundle, except the C library, cuBLASLt and the driver.
check_needs() {
  local program library
  for program in "$bundle"/bin/* "$bundle"/lib/*; do
    while read -r library; do
      case $library in
        libc.so.6 | libm.so.6 | ld-linux-x86-64.so.2 | libpthread.so.0 | libdl.so.2 | librt.so.1) ;;
        libcublasLt.so.13) [[ $program == *.so ]] || { say "$program needs $library"; exit 1; } ;;
        *) [[ -f $bundle/lib/$library ]] || { say "$program needs $library, which is not in the bundle"; exit 1; } ;;
      esac
    done < <(readelf -d "$program" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
  done
  say "requires glibc $(objdump -T "$bundle"/bin/* "$bundle"/lib/* | grep -o 'GLIBC_[0-9.]\+' |
    sort -Vu | tail -1 | cut -d_ -f2) or newer"
}

# ---- run ------------------------------------------------------------------------------------------
# Checked before anything is built or started.
require_gpu() {
  [[ -e /dev/nvidia0 || -e /dev/nvidiactl ]] && return
  nvidia-smi -L >/dev/null 2>&1 && return
  say "no GPU found: /dev/nvidia0 does not exist and nvidia-smi lists no device"
  exit 4
}

# Finds cuBLASLt, CUPTI and NCCL in the CUDA toolkit or in Python wheels. Python itself runs without
# the bundle's libraries, since its modules may need a newer C++ library.
find_libraries() {
  local folders
  folders=$(python3 -c 'import glob, site, sys
for p in {*site.getsitepackages(), *sys.path}:
    print(*glob.glob(p + "/nvidia/*/lib"), sep="\n")' 2>/dev/null | sort -u | tr '\n' ':')
  export box_library_path=${LD_LIBRARY_PATH:-}
  export LD_LIBRARY_PATH=$bundle/lib:/usr/local/cuda/lib64:/usr/local/cuda/extras/CUPTI/lib64
  LD_LIBRARY_PATH+=:$folders$box_library_path
}

box_python() { LD_LIBRARY_PATH=$box_library_path python3 "$@"; }

# step NAME SECONDS COMMAND...: logs to NAME.txt and adds a line to the summary; continues on failure.
step() {
  local name=$1 limit=$2 status=0 start=$SECONDS
  shift 2
  # timeout needs a program: functions of this script are started as gpu_run.sh part NAME.
  timeout -k 5 "$limit" "$@" >"$out/$name.txt" 2>&1 || status=$?
  printf '| %s | %s | %d s |\n' "$name" "$( ((status)) && echo "failed: $status" || echo passed)" \
    $((SECONDS - start)) | tee -a "$out/summary.md" >&2
  publish
  return "$status"
}

# Copies the results so far to the results directory.
publish() {
  local file
  {
    cat "$out/summary.md"
    for part in report validation throughput nccl torch train; do
      [[ -f $out/$part.txt ]] || continue
      printf '\n## %s\n\n' "$part"
      grep -v '^gpu: ' "$out/$part.txt" | tail -n 120
    done
    for part in doctor tests training calibrate activity memcheck racecheck; do
      grep -q "^| $part | failed" "$out/summary.md" || continue
      printf '\n## %s failed\n\n```\n' "$part"
      grep -v '^\[       OK\|^\[ RUN' "$out/$part.txt" | tail -n 60
      printf '```\n'
    done
  } >"$results/summary.md"
  for file in kernels.json torch.json train.json throughput.json device.calib.json; do
    [[ -f $out/$file ]] && cp "$out/$file" "$results/"
  done
  tar -C "$out" -czf "$results/logs.tar.gz" . 2>/dev/null
}

run_tests() {
  "$bin/kernels_test" --gtest_filter='*cuda*:Cuda*' --gtest_brief=1 \
    --gtest_output="json:$out/kernels_test.json"
}

# Trains small models under many plans on the device and on the host.
run_training() {
  "$bin/executor_test" --gtest_filter='*CudaTraining*' --gtest_brief=1 \
    --gtest_output="json:$out/executor_test.json"
}

# One case per access pattern; all cases would take too long under a sanitizer.
run_checker() { # TOOL FILTER
  compute-sanitizer --tool "$1" --error-exitcode 9 --print-limit 20 \
    "$bin/kernels_test" --gtest_filter="$2" --gtest_brief=1
}

# GPT-2 124M on a single GPU, wall clock: kernels run back to back, tasks are timed by events.
measure_throughput() {
  "$bin/meshwright" run --model gpt2 --cluster this-machine --gpus 1 --dtype bf16 --seq 1024 \
    --micro-batch 8 --global-batch 8 --steps 12 --device cuda --clock wall --json \
    >"$out/throughput.json" || return
  box_python - "$out/throughput.json" <<'PY'
import json, sys
run = json.load(open(sys.argv[1]))
step = run["step_time_ns"]  # the median
print(f"GPT-2 124M, bf16, 8 x 1024: {step / 1e6:.2f} ms/step, {8 * 1024 / step * 1e9:.0f} tokens/s")
PY
}

# Records every kernel and copy of two data-parallel ranks, to check that gradient communication overlaps.
record_activity() {
  "$bin/meshwright" run --model gpt2 --cluster this-machine --gpus 2 --dp 2 --dtype bf16 --seq 512 \
    --micro-batch 2 --global-batch 8 --steps 2 --device cuda --clock wall \
    --activity "$out/activity.json"
}

# Runs plans of one model with 1 to 16 ranks on this device; prints predicted and measured step times.
validate() {
  local cal=$out/device.calib.json strategies=(
    "--gpus 1" "--gpus 2 --dp 2" "--gpus 2 --pp 2" "--gpus 2 --tp 2" "--gpus 4 --dp 2 --pp 2"
    "--gpus 4 --tp 2 --pp 2" "--gpus 4 --pp 4" "--gpus 8 --dp 2 --tp 2 --pp 2" "--gpus 8 --dp 8"
    "--gpus 8 --tp 4 --pp 2" "--gpus 16 --dp 4 --pp 4" "--gpus 16 --dp 2 --tp 4 --pp 2")
  export MESHWRIGHT_CALIBRATION=$cal
  # Small enough for the time limit.
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
    box_python - "$strategy" "$out/plan-$number.json" "$out/predicted-$number.json" <<'PY'
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

# Time limits of the steps in seconds. Including five seconds before each kill, every part ends within
# ten minutes.
run_kernels() { # TESTS TRAINING REPORT
  step tests "$1" "$0" part run_tests
  step training "$2" "$0" part run_training
  step report "$3" "$bin/gpu_report" -o "$out/kernels.json"
  return 0
}
run_plans() { # CALIBRATE VALIDATION THROUGHPUT ACTIVITY NCCL TRAIN TORCH
  step calibrate "$1" "$bin/meshwright" calibrate --device cuda --quick -o "$out/device.calib.json"
  step validation "$2" "$0" part validate
  step throughput "$3" "$0" part measure_throughput
  step activity "$4" "$0" part record_activity
  step nccl "$5" "$bin/nccl_smoke"
  if box_python -c 'import torch' 2>/dev/null; then
    step train "$6" "$0" part box_python "$root/executor/gpu_torch_train.py" "$out/train.json"
    step torch "$7" "$0" part box_python "$root/executor/gpu_torch.py" "$out/torch.json"
  fi
  return 0
}
run_sanitizers() { # MEMCHECK RACECHECK
  command -v compute-sanitizer >/dev/null || return 0
  step memcheck "$1" "$0" part run_checker memcheck '*Attention*cuda*:*Norm*cuda*'
  step racecheck "$2" "$0" part run_checker racecheck '*Blocks*cuda*:*Sorts*cuda*'
  return 0
}

run_all() { # PART DIRECTORY
  local which=$1
  require_gpu
  results=${2:-$root/build/gpu-results}
  mkdir -p "$results" || exit 1
  results=$(cd "$results" && pwd)
  out=$(mktemp -d) # all logs and plan files
  bin=$bundle/bin
  if [[ ! -x $bin/kernels_test && -f $bundle/bundle.tar.gz ]]; then
    tar -C "$bundle" -xzf "$bundle/bundle.tar.gz" || exit 1
  fi
  if [[ ! -x $bin/kernels_test ]]; then
    say "gpu_bundle/ not found: building it"
    make_bundle
    tar -C "$bundle" -xzf "$bundle/bundle.tar.gz" || exit 1
  fi
  find_libraries
  export out bin results
  {
    printf '# GPU run of %s\n\ncommit %s\n\n' "$(date -u '+%Y-%m-%d %H:%M UTC')" \
      "$(cat "$bundle/commit" 2>/dev/null || echo unknown)"
    nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.sm,clocks.max.sm \
      --format=csv 2>&1
    printf '\n| step | result | time |\n|---|---|---|\n'
  } >"$out/summary.md"
  step doctor 15 "$bin/meshwright" doctor --device cuda || { cat "$out/doctor.txt" >&2; exit 4; }
  case $which in
    all) run_kernels 110 60 50 && run_plans 40 65 25 10 20 60 30 && run_sanitizers 20 15 ;;
    kernels) run_kernels 240 180 120 ;;
    plans) run_plans 80 180 60 15 40 100 60 ;;
    sanitizers) run_sanitizers 280 240 ;;
  esac
  cat "$results/summary.md"
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
        say "invalid value '$which' for --part: expected kernels, plans or sanitizers"
        exit 2
        ;;
    esac
    ;;
  part) shift && "$@" ;; # used by step()
  *)
    say "unknown command '$1': expected bundle or run"
    exit 2
    ;;
esac
