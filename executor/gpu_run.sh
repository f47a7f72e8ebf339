#!/usr/bin/env bash
# Tests and measures Meshwright on a GPU within nine minutes, see gpu_runbook.md. Called by ./dev gpu.
#
#   gpu_run.sh bundle                   build gpu_bundle/ for GPU machines without our libraries
#   gpu_run.sh run [--steps NAME,NAME,...] [DIRECTORY]
#                                       on the GPU machine: run from gpu_bundle/ (built if missing)
#
# DIRECTORY gets at most eight files, updated after every step, so that an aborted run keeps its
# results: summary.md, the JSON reports, the device file, and an archive of all logs.
set -uo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
bundle=$root/gpu_bundle
most_mib=64       # upload limit
time_of_all=540   # seconds; MESHWRIGHT_GPU_SECONDS overrides it

say() { printf 'gpu: %s\n' "$*" >&2; }

# ---- bundle: programs, the plug-in and libraries that other systems may lack ---------------------
make_bundle() {
  local build=$root/build/release library program
  local programs=(meshwright kernels_test executor_test gpu_report nccl_smoke)
  # The release build targets Hopper; other architectures get a separate build.
  [[ -z ${MESHWRIGHT_CUDA_ARCHITECTURES:-} ]] || build=$root/build/gpu
  fetch_headers
  cmake --preset release -S "$root" -B "$build" \
    "-DMESHWRIGHT_CUDA_ARCHITECTURES=${MESHWRIGHT_CUDA_ARCHITECTURES:-90a-real}" \
    "-DCUDNN_FRONTEND_DIR=$headers/include" "-DCUTLASS_DIR=$headers/cutlass_library/source/include" >&2 || exit 1
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

# cuDNN's frontend and CUTLASS, which are header-only, from PyPI.
headers=$root/build/gpu-headers
fetch_headers() {
  local packages=(nvidia-cudnn-frontend==1.32.0 nvidia-cutlass==4.2.0.0)
  [[ "$(cat "$headers/packages" 2>/dev/null)" != "${packages[*]}" ]] || return 0
  say "fetching ${packages[*]}"
  rm -rf "$headers" && mkdir -p "$headers/wheels" && python3 -m venv "$headers/venv" &&
    "$headers/venv/bin/pip" download --quiet --disable-pip-version-check --no-deps -d "$headers/wheels" \
      "${packages[@]}" >&2 || { say "cannot fetch ${packages[*]} from PyPI"; exit 1; }
  local wheel
  for wheel in "$headers"/wheels/*.whl; do python3 -m zipfile -e "$wheel" "$headers" || exit 1; done
  printf '%s\n' "${packages[*]}" >"$headers/packages"
}

# All dependencies must be in the bundle, except the C library, cuBLASLt and the driver.
check_needs() {
  local program library
  for program in "$bundle"/bin/* "$bundle"/lib/*; do
    while read -r library; do
      case $library in
        libc.so.6 | libm.so.6 | ld-linux-x86-64.so.2 | libpthread.so.0 | libdl.so.2 | librt.so.1) ;;
        libcublasLt.so.1[23]) [[ $program == *.so ]] || { say "$program needs $library"; exit 1; } ;;
        *) [[ -f $bundle/lib/$library ]] || { say "$program needs $library, which is not in the bundle"; exit 1; } ;;
      esac
    done < <(readelf -d "$program" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
  done
  say "requires glibc $(objdump -T "$bundle"/bin/* "$bundle"/lib/* | grep -o 'GLIBC_[0-9.]\+' |
    sort -Vu | tail -1 | cut -d_ -f2) or newer"
}

# ---- the steps ------------------------------------------------------------------------------------
# In the order of a run: what matters most comes first. Limits are in seconds; at usual speed all steps
# together take about half of the sum. Neighbors of a group run at the same time: nothing in them is timed.
groups=("tests training" "nccl memcheck racecheck")
all_steps=(doctor tests training throughput train report torch calibrate validation activity nccl memcheck
  racecheck)
declare -A limits=([doctor]=60 [tests]=120 [throughput]=120 [train]=180 [report]=120 [torch]=90 [training]=90
  [calibrate]=80 [validation]=120 [activity]=90 [nccl]=60 [memcheck]=60 [racecheck]=60)

step_doctor() { "$bin/meshwright" doctor --device cuda; }

step_tests() { run_tests kernels_test '*cuda*:Cuda*'; }

# Trains small models under many plans on the device and on the host; measures the device.
step_training() { run_tests executor_test '*CudaTraining*:CudaMeasuredDevice*'; }

run_tests() { # PROGRAM FILTER
  "$bin/$1" --gtest_filter="$2" --gtest_brief=1 --gtest_output="json:$out/$1.json" || return
  # On a GPU nothing may be skipped.
  ! grep -q '"result": "SKIPPED"' "$out/$1.json" || { say "tests were skipped"; return 1; }
}

step_report() { "$bin/gpu_report" -o "$out/kernels.json" --csv "$out/kernels.csv"; }
step_torch() { box_python "$root/executor/gpu_torch.py" "$out/torch.json"; }

# Jobs of the steps throughput (Meshwright) and train (PyTorch): name, sequences per step, their length.
jobs=("gpt2 8 1024" "gpt2-xl 4 1024" "llama-1b 4 2048")
[[ -z ${MESHWRIGHT_GPU_JOBS:-} ]] || IFS=, read -ra jobs <<<"$MESHWRIGHT_GPU_JOBS"

# No dropout, as in PyTorch's runs.
write_models() {
  local name
  if [[ -n ${MESHWRIGHT_GPU_REHEARSAL:-} ]]; then
    for name in gpt2 gpt2-xl small-gpt llama-1b; do
      printf '{"model_type": "gpt2", "vocab_size": 256, "n_layer": 4, "n_embd": 32, "n_head": 4, "n_positions": 16,
 "attn_pdrop": 0, "embd_pdrop": 0, "resid_pdrop": 0}\n' >"$out/$name.config.json"
    done
    return
  fi
  local gpt='"model_type": "gpt2", "vocab_size": 50257, "attn_pdrop": 0, "embd_pdrop": 0, "resid_pdrop": 0'
  printf '{%s, "n_layer": 12, "n_embd": 768, "n_head": 12, "n_positions": 1024}\n' "$gpt" >"$out/gpt2.config.json"
  printf '{%s, "n_layer": 48, "n_embd": 1600, "n_head": 25, "n_positions": 1024}\n' "$gpt" >"$out/gpt2-xl.config.json"
  printf '{%s, "n_layer": 4, "n_embd": 512, "n_head": 8, "n_positions": 256}\n' "${gpt/50257/8192}" \
    >"$out/small-gpt.config.json"
  # The sizes of Llama 3.2 1B.
  printf '%s\n' '{"model_type": "llama", "hidden_size": 2048, "num_hidden_layers": 16, "num_attention_heads": 32,
 "num_key_value_heads": 8, "head_dim": 64, "intermediate_size": 8192, "vocab_size": 128256, "rms_norm_eps": 1e-5,
 "rope_theta": 500000, "max_position_embeddings": 2048, "tie_word_embeddings": true}' >"$out/llama-1b.config.json"
}

# A cluster of such GPUs. By the wall clock it does not matter which.
cluster_here() {
  local name
  for name in a100 h100 h200 b200; do
    nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | grep -qi "$name" && echo "dgx-$name" && return
  done
  echo dgx-h100
}

# On one GPU, by the wall clock: kernels run back to back.
run_job() { # NAME BATCH LENGTH STEPS [OPTIONS]
  "$bin/meshwright" run --model "$out/$1.config.json" --cluster "$cluster" --gpus 1 --dtype bf16 --seq "$3" \
    --micro-batch "$2" --global-batch "$2" --steps "$4" --device cuda --clock wall --json "${@:5}"
}

step_throughput() {
  local name batch length failed=0
  for job in "${jobs[@]}"; do
    read -r name batch length <<<"$job"
    run_job "$name" "$batch" "$length" 12 >"$out/throughput-$name.json" ||
      { rm "$out/throughput-$name.json"; failed=1; continue; }
    box_python - "$name" "$batch" "$length" "$out" <<'PY'
import json, sys
name, batch, length, out = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
run = json.load(open(f"{out}/throughput-{name}.json"))
step = run["step_time_ns"]  # the median
rate = batch * length / step * 1e9
print(f"{name}, bf16, {batch} x {length}: {step / 1e6:.2f} ms/step, {rate:.0f} tokens/s, "
      f"loss {run['steps'][0]['loss']:.4f} to {run['steps'][-1]['loss']:.4f}")
try:
    rows = json.load(open(f"{out}/throughput.json"))
except FileNotFoundError:
    rows = []
rows.append({"model": name, "batch": batch, "length": length, "step_s": step / 1e9, "tokens_per_s": rate,
             "step_times_s": [s["step_time_ns"] / 1e9 for s in run["steps"]],
             "losses": [s["loss"] for s in run["steps"]]})
json.dump(rows, open(f"{out}/throughput.json", "w"), indent=1)
PY
  done
  return "$failed"
}

step_train() { # [--compile-only JOB]
  local name batch length options=() arguments=() chosen=("${jobs[@]}")
  (($# == 0)) || { options=("$1") && chosen=("$2"); }
  for job in "${chosen[@]}"; do
    read -r name batch length <<<"$job"
    arguments+=("$out/$name.config.json:$batch:$length")
  done
  box_python "$root/executor/gpu_torch_train.py" "${options[@]}" "$out/train.json" "${arguments[@]}"
}

step_calibrate() { "$bin/meshwright" calibrate --device cuda --quick -o "$out/device.calib.json"; }

# Records every kernel and copy: of the jobs, for a table of their kernels, and of two data-parallel
# ranks, to check that gradient communication overlaps.
step_activity() {
  local name batch length failed=0
  for job in "${jobs[@]}"; do
    read -r name batch length <<<"$job"
    run_job "$name" "$batch" "$length" 4 --activity "$out/activity-$name.json" >/dev/null &&
      printf '%s, ' "$name" && box_python "$root/executor/gpu_activity.py" "$out/activity-$name.json" || failed=1
  done
  "$bin/meshwright" run --model "$out/gpt2.config.json" --cluster "$cluster" --gpus 2 --dp 2 --dtype bf16 --seq 512 \
    --micro-batch 2 --global-batch 8 --steps 2 --device cuda --clock wall \
    --activity "$out/activity.json" || failed=1
  return "$failed"
}

# Runs plans with 1 to 16 ranks on this device, each kernel alone; prints predicted and measured step times. Then those
# of the steps that `throughput` has run.
step_validation() {
  local number=0 failed=0 step_count=4 plan name batch length options plans=(
    "small-gpt --gpus 1" "small-gpt --gpus 2 --dp 2" "small-gpt --gpus 2 --pp 2" "small-gpt --gpus 2 --tp 2"
    "small-gpt --gpus 4 --dp 2 --pp 2" "small-gpt --gpus 4 --tp 2 --pp 2" "small-gpt --gpus 4 --pp 4"
    "small-gpt --gpus 8 --dp 2 --tp 2 --pp 2" "small-gpt --gpus 8 --dp 8" "small-gpt --gpus 8 --tp 4 --pp 2"
    "small-gpt --gpus 16 --dp 4 --pp 4" "small-gpt --gpus 16 --dp 2 --tp 4 --pp 2"
    "gpt2 --gpus 1" "gpt2 --gpus 2 --tp 2" "gpt2 --gpus 4 --dp 2 --pp 2" "llama-1b --gpus 4 --tp 2 --pp 2")
  if [[ -n ${MESHWRIGHT_GPU_REHEARSAL:-} ]]; then
    plans=("small-gpt --gpus 1" "small-gpt --gpus 2 --tp 2" "gpt2 --gpus 4 --dp 2 --pp 2")
    step_count=2
  fi
  [[ ! -f $out/device.calib.json ]] || export MESHWRIGHT_CALIBRATION=$out/device.calib.json
  [[ -f ${MESHWRIGHT_CALIBRATION:-} ]] || { say "no calibration"; return 1; }
  printf '| plan | step, predicted / measured | F | B | optimizer | error |\n|---|---|---|---|---|---|\n'
  for plan in "${plans[@]}"; do
    number=$((number + 1))
    read -r name options <<<"$plan"
    case $name in
      small-gpt) batch=(--global-batch 16 --seq 256) ;;
      *) batch=(--global-batch 16 --micro-batch 2 --seq 1024) ;;
    esac
    [[ -z ${MESHWRIGHT_GPU_REHEARSAL:-} ]] || batch=(--global-batch 4 --seq 4)
    # shellcheck disable=SC2206
    local job=(--model "$out/$name.config.json" --cluster this-machine $options --dtype bf16 "${batch[@]}")
    local traces=("$out/predicted-$number.pftrace" "$out/measured-$number.pftrace")
    {
      timeout 60 "$bin/meshwright" run "${job[@]}" --steps "$step_count" --device cuda -o "${traces[1]}" &&
        timeout 20 "$bin/meshwright" simulate "${job[@]}" --all-ranks -o "${traces[0]}" &&
        "$bin/meshwright" compare "${traces[@]}" --json -o "$out/compared-$number.json"
    } >"$out/plan-$number.txt" 2>&1 || {
      printf '| %s | failed |\n' "$plan"
      tail -n 3 "$out/plan-$number.txt" >&2
      failed=1
      continue
    }
    box_python - "$plan" "$out/compared-$number.json" <<'PY' || failed=1
import json, sys
compared = json.load(open(sys.argv[2]))
step, kinds = compared["step"], compared["by_kind"]
cells = [f"{k['predicted_ns'] / 1e6:.3f} / {k['measured_ns'] / 1e6:.3f} ms" if k else ""
         for k in (step, *(kinds.get(name) for name in ("F", "B", "optimizer")))]
print(f"| {sys.argv[1]} | {' | '.join(cells)} | {100 * step['error']:+.1f} % |")
PY
  done
  for job in "${jobs[@]}"; do
    read -r name batch length <<<"$job"
    [[ -f $out/throughput-$name.json ]] || continue
    timeout 20 "$bin/meshwright" simulate --model "$out/$name.config.json" --cluster this-machine --gpus 1 --dtype bf16 \
      --seq "$length" --micro-batch "$batch" --global-batch "$batch" --json >"$out/simulated-$name.json" &&
      box_python - "$name" "$out/simulated-$name.json" "$out/throughput-$name.json" <<'PY' || failed=1
import json, sys
predicted, measured = (json.load(open(file))["step_time_ns"] for file in sys.argv[2:])
print(f"| {sys.argv[1]}, wall clock | {predicted / 1e6:.3f} / {measured / 1e6:.3f} ms | | | | {100 * (predicted / measured - 1):+.1f} % |")
PY
  done
  return "$failed"
}

# Two processes on this GPU, which NCCL allows if they claim to be on different hosts: collectives with
# exact sums, and training with the variables of torchrun.
step_nccl() {
  local strategy failed=0
  export NCCL_MULTI_RANK_GPU_ENABLE=1
  "$bin/nccl_smoke" || failed=1
  export WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29641 LOCAL_WORLD_SIZE=1 LOCAL_RANK=0
  export NCCL_NET=Socket NCCL_SOCKET_IFNAME=lo NCCL_IB_DISABLE=1 NCCL_MNNVL_ENABLE=0 NCCL_NVLS_ENABLE=0 NCCL_MAX_CTAS=2
  for strategy in "--dp 2 --zero 1" "--pp 2" "--tp 2" "--cp 2"; do
    run_with_nccl "$strategy" && continue
    say "--ranks nccl $strategy failed"
    failed=1
  done
  return "$failed"
}
run_with_nccl() { # STRATEGY
  local rank pids=() failed=0
  for rank in 0 1; do
    # shellcheck disable=SC2086
    RANK=$rank NCCL_HOSTID=host$rank timeout 30 "$bin/meshwright" run --model "$out/small-gpt.config.json" \
      --cluster "$cluster" --gpus 2 $1 --dtype bf16 --global-batch 8 --micro-batch 2 --seq 256 --steps 3 --device cuda \
      --clock wall --ranks nccl >"$out/nccl-rank$rank.txt" 2>&1 &
    pids+=($!)
  done
  for rank in 0 1; do wait "${pids[rank]}" || { failed=1 && tail -n 5 "$out/nccl-rank$rank.txt"; }; done
  ((failed)) || printf '%s: %s\n' "$1" "$(grep 'median step time' "$out/nccl-rank0.txt")"
  return "$failed"
}

# One case per access pattern; all cases would take too long under a sanitizer.
check_by() { # TOOL FILTER
  command -v compute-sanitizer >/dev/null || { say "compute-sanitizer not found"; return 1; }
  compute-sanitizer --tool "$1" --error-exitcode 9 --print-limit 20 \
    "$bin/kernels_test" --gtest_filter="$2" --gtest_brief=1
}
step_memcheck() { check_by memcheck '*Attention*cuda*:*Norm*cuda*'; }
step_racecheck() { check_by racecheck '*Blocks*cuda*:*Sorts*cuda*'; }

# ---- run ------------------------------------------------------------------------------------------
# Checked before anything is built or started.
require_gpu() {
  [[ -e /dev/nvidia0 || -e /dev/nvidiactl ]] && return
  nvidia-smi -L >/dev/null 2>&1 && return
  say "no GPU found: /dev/nvidia0 does not exist and nvidia-smi lists no device"
  exit 4
}

# Finds cuBLASLt, cuDNN, CUPTI and NCCL in the CUDA toolkit or in Python wheels. Python itself runs
# without the bundle's libraries, since its modules may need a newer C++ library.
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
has_torch() { box_python -c 'import torch' 2>/dev/null; }

# step NAME: runs it within its time limit and what is left of the time of all steps, logs to NAME.txt
# and adds a line to the summary. A failing step of ours is tried again with plain allocations, to find
# out whether CUDA's memory pool is the cause.
step() {
  local name=$1 result=passed status=0 start=$SECONDS
  run_within "${limits[$name]}" "$name" >"$out/$name.txt" 2>&1 || status=$?
  if ((status == 124 || status == 137)); then
    result="failed: not finished after $((SECONDS - start)) s"
  elif ((status == 125)); then
    result="not run: no time left"
  elif ((status)); then
    result="failed: exit status $status"
    case $name in
      doctor | train | torch | memcheck | racecheck) ;;
      *)
        MESHWRIGHT_CUDA_POOL=own run_within "${limits[$name]}" "$name" >"$out/$name-own-pool.txt" 2>&1 &&
          result+=", passes with MESHWRIGHT_CUDA_POOL=own"
        ;;
    esac
  fi
  printf '| %s | %s | %d s |\n' "$name" "$result" $((SECONDS - start)) | tee -a "$out/summary.md" >&2
}

run_within() { # SECONDS STEP
  local left=$((time_of_all - SECONDS - 10)) # for the kill and for the results
  ((left > 5)) || return 125
  # timeout needs a program: steps are functions, started as gpu_run.sh step NAME.
  timeout -k 5 "$(($1 < left ? $1 : left))" "$0" step "$2"
}

# Copies the results so far to the results directory.
publish() {
  local file
  {
    cat "$out/summary.md"
    for part in throughput train report torch validation activity nccl; do
      [[ -f $out/$part.txt ]] || continue
      printf '\n## %s\n\n' "$part"
      grep -v '^gpu: ' "$out/$part.txt" | tail -n 120
    done
    for part in "${all_steps[@]}"; do
      grep -q "^| $part | failed" "$out/summary.md" || continue
      printf '\n## %s failed\n\n```\n' "$part"
      grep -v '^\[       OK\|^\[ RUN' "$out/$part.txt" | tail -n 60
      printf '```\n'
    done
  } >"$results/summary.md"
  for file in kernels.json kernels.csv torch.json train.json throughput.json device.calib.json; do
    [[ -f $out/$file ]] && cp "$out/$file" "$results/"
  done
  tar -C "$out" --exclude=./inductor --exclude='./activity*.json' -czf "$results/logs.tar.gz" . 2>/dev/null
}

# torch.compile keeps the CPU busy for minutes: it fills its cache while steps run that are not timed.
start_compiling() {
  local job
  for job in "${jobs[@]}"; do
    "$0" step train --compile-only "$job" >>"$out/compile.txt" 2>&1 &
  done
}

run_steps() { # DIRECTORY STEP...
  results=${1:-$root/build/gpu-results}
  shift
  require_gpu
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
  cluster=$(cluster_here)
  export out bin results cluster
  export TORCHINDUCTOR_CACHE_DIR=$out/inductor
  write_models
  {
    printf '# GPU run of %s\n\ncommit %s\n\n' "$(date -u '+%Y-%m-%d %H:%M UTC')" \
      "$(cat "$bundle/commit" 2>/dev/null || echo unknown)"
    nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.sm,clocks.max.sm \
      --format=csv 2>&1
    printf '\n| step | result | time |\n|---|---|---|\n'
  } >"$out/summary.md"
  [[ " $* " != *" train "* ]] || ! has_torch || start_compiling
  local name group="" running=()
  for name in "$@"; do
    [[ $name != train && $name != torch ]] || has_torch || continue
    if [[ -z $(group_of "$name") || $(group_of "$name") != "$group" ]]; then
      finish "${running[@]}"
      running=()
    fi
    group=$(group_of "$name")
    if [[ -n $group ]]; then
      step "$name" &
      running+=($!)
      continue
    fi
    [[ $name == doctor ]] || wait # for start_compiling()
    step "$name"
    publish
    if [[ $name == doctor ]] && grep -q 'status 4' "$out/summary.md"; then
      cat "$out/doctor.txt" >&2
      exit 4
    fi
  done
  finish "${running[@]}"
  cat "$results/summary.md"
  local failures
  failures=$(grep -c '^| [a-z]* | \(failed\|not run\)' "$out/summary.md")
  ((failures == 0)) || { say "$failures steps failed"; exit 1; }
}

group_of() { # STEP
  local group
  for group in "${groups[@]}"; do [[ " $group " != *" $1 "* ]] || echo "$group"; done
}
finish() { # PROCESS...
  (($#)) || return 0
  wait "$@"
  publish
}

case ${1:-run} in
  bundle) make_bundle ;;
  run)
    shift
    time_of_all=${MESHWRIGHT_GPU_SECONDS:-$time_of_all}
    steps=("${all_steps[@]}")
    if [[ ${1:-} == --steps ]]; then
      IFS=, read -ra steps <<<"${2:-}"
      shift 2 || shift
      for name in "${steps[@]}"; do
        [[ -n ${limits[$name]:-} ]] || { say "unknown step '$name': expected ${all_steps[*]}"; exit 2; }
      done
      ((${#steps[@]})) || { say "--steps: expected ${all_steps[*]}"; exit 2; }
    fi
    run_steps "${1:-}" "${steps[@]}"
    ;;
  step) shift && "step_$1" "${@:2}" ;; # used by run_within()
  *)
    say "unknown command '$1': expected bundle or run"
    exit 2
    ;;
esac
