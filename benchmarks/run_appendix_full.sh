#!/usr/bin/env bash
# The appendix's experiments and the studies in full, for an accelerator.
#
#   benchmarks/run_appendix_full.sh [OUT] [MNIST_DIR] [STEP ...]
#
# OUT is `results/appendix` by default. Without MNIST_DIR (or with -) MNIST is
# downloaded. STEP picks among: snr additive vae negatives divergences temperature
# smoothing proposals alpha; all by default. A command given again goes on where it
# stopped. Runs from a checkout: nothing needs to be installed but the dependencies.
set -euo pipefail

root="$(cd "$(dirname "$0")/.." && pwd)"
out="${1:-$root/results/appendix}"
mnist="${2:--}"
steps=("${@:3}")
if [ ${#steps[@]} -eq 0 ]; then
  steps=(snr additive vae negatives divergences temperature smoothing proposals alpha)
fi
export PYTHONPATH="$root${PYTHONPATH:+:$PYTHONPATH}"
python="${PYTHON:-python}"

reproduce() {
  local begun=$SECONDS
  echo "== softcvi reproduce $*"
  "$python" -m softcvi reproduce "$@"
  echo "== $((SECONDS - begun)) s"
}

data=()
[ "$mnist" = "-" ] || data=(--data-dir "$mnist")

for step in "${steps[@]}"; do
  case "$step" in
    snr) reproduce snr --out "$out/snr" ;;
    additive) reproduce neural-additive --out "$out/neural-additive" ;;
    vae)
      reproduce vae --images mnist "${data[@]}" --batch-size 1 --steps 100000 \
        --out "$out/vae"
      reproduce vae --images mnist "${data[@]}" --batch-size 100 --steps 30000 \
        --out "$out/vae"
      reproduce vae --images digits --batch-size 32 --steps 30000 --out "$out/vae"
      ;;
    negatives)
      # In the folder of a finished `reproduce metrics` only the posterior's fits,
      # a third of the work, are left to do.
      reproduce negatives --runs 50 --steps 50000 \
        --out "${METRICS_OUT:-$out/negatives}"
      ;;
    divergences | temperature | smoothing | proposals | alpha)
      reproduce studies --study "$step" --runs 20 --steps 10000 --out "$out/studies"
      ;;
    *)
      echo "unknown step $step" >&2
      exit 2
      ;;
  esac
done
