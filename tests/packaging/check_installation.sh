#!/usr/bin/env bash
# Installs into a temporary directory and uses what was installed, with an empty environment:
#
#   check_installation.sh BUILD_FOLDER        what cmake --install installs
#   check_installation.sh --packages DEB...   what the packages contain
#
# Needs no root. Checks with man, mandoc, zsh, desktop-file-validate and lintian where they are there.
set -euo pipefail

fail() { printf 'check_installation: %s\n' "$*" >&2; exit 1; }
has() { command -v "$1" >/dev/null; }

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
root=$scratch/root
mkdir "$root"
mkdir -m 700 "$scratch/home"

if [[ ${1:-} == --packages ]]; then
  shift
  (($#)) || fail "no packages given"
  for package in "$@"; do
    [[ -f $package ]] || fail "no package $package"
    dpkg-deb -x "$package" "$root"
    for field in Maintainer Description Section Depends; do
      [[ -n $(dpkg-deb -f "$package" "$field") ]] || fail "$package: no $field"
    done
  done
  if has lintian; then lintian --fail-on error --tag-display-limit 0 "$@" || fail "lintian found errors"; fi
  zsh_functions=share/zsh/vendor-completions license=copyright
else
  build=${1:?usage: check_installation.sh BUILD_FOLDER}
  DESTDIR=$root cmake --install "$build" --prefix /usr >"$scratch/log" || { cat "$scratch/log" >&2; exit 1; }
  zsh_functions=share/zsh/site-functions license=LICENSE
fi

usr=$root/usr
file() { [[ -s $usr/$1 ]] || fail "$1 was not installed"; }
# Programs run where nothing of this machine's environment or of the source tree helps them.
bare() { (cd "$scratch/home" && env -i "$@"); }

# ---- the program -------------------------------------------------------------------------------
program=$usr/bin/meshwright
file bin/meshwright
bare "$program" --version | grep '^meshwright [0-9]' >/dev/null || fail "meshwright --version"
bare "$program" plan --model gpt2 --cluster dgx-a100 --gpus 8 --global-batch 64 --seq 1024 \
  -o best.plan.json | grep 'gpt2 on dgx-a100' >/dev/null || fail "meshwright plan"
bare "$program" simulate best.plan.json -o best.pftrace >/dev/null || fail "meshwright simulate"
for page in models clusters schedules; do
  bare "$program" show $page >/dev/null || fail "meshwright show $page"
done

# ---- hardening -----------------------------------------------------------------------------------
if has readelf; then
  contains() { grep -q "$1" <<<"$elf" || fail "meshwright is not hardened: no $2"; }
  elf=$(readelf --wide --file-header --program-headers --dynamic --dyn-syms "$program")
  contains 'Type: *DYN' 'position-independent code'
  contains GNU_RELRO 'read-only relocations'
  contains 'NOW' 'immediate binding'
  contains __stack_chk_fail 'stack protector'
  contains '__[a-z]*_chk@' '_FORTIFY_SOURCE'
fi

# ---- its documentation ---------------------------------------------------------------------------
commands=$(bare "$program" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]\{1,\}\) .*/\1/p')
[[ -n $commands ]] || fail "meshwright --help lists no commands"
for command in $commands; do file "share/man/man1/meshwright-$command.1.gz"; done
for page in "$usr"/share/man/man1/*.gz; do
  gzip -t "$page" || fail "$page"
  if has mandoc; then zcat "$page" | mandoc -T lint -W warning || fail "mandoc: $page"; fi
  if has man; then
    [[ -z $(man --warnings -E UTF-8 -l -Tutf8 -Z "$page" 2>&1 >/dev/null) ]] || fail "man: $page"
  fi
done
file share/bash-completion/completions/meshwright
bash -n "$usr/share/bash-completion/completions/meshwright" || fail "the completion for bash"
file $zsh_functions/_meshwright
if has zsh; then zsh -n "$usr/$zsh_functions/_meshwright" || fail "the completion for zsh"; fi
file share/doc/meshwright/README.md
file share/doc/meshwright/CHANGELOG.md
file share/doc/meshwright/$license

# ---- the desktop program -------------------------------------------------------------------------
if [[ -e $usr/bin/meshwright-gui ]]; then
  file share/man/man1/meshwright-gui.1.gz
  file share/applications/meshwright-gui.desktop
  file share/icons/hicolor/scalable/apps/meshwright.svg
  file share/mime/packages/meshwright.xml
  if has desktop-file-validate; then
    desktop-file-validate "$usr/share/applications/meshwright-gui.desktop" || fail "the desktop entry"
  fi
  bare QT_QPA_PLATFORM=offscreen XDG_RUNTIME_DIR="$scratch/home" "$usr/bin/meshwright-gui" \
    --list-screens | grep explore >/dev/null ||
    fail "meshwright-gui --list-screens"
fi

# ---- the GPU plug-in -----------------------------------------------------------------------------
if [[ -e $usr/lib/meshwright/libmeshwright_cuda.so ]]; then
  if bare "$program" doctor | grep 'libmeshwright_cuda.so: cannot open shared object'; then
    fail "meshwright does not find its GPU plug-in"
  fi
fi

# ---- nothing points back to the build ------------------------------------------------------------
for binary in "$usr"/bin/* "$usr"/lib/meshwright/*.so; do
  [[ -e $binary ]] || continue
  if has readelf && readelf -d "$binary" | grep -E 'RPATH|RUNPATH' | grep -v '\[/usr/local/cuda/lib64\]'; then
    fail "$binary has a path of the build"
  fi
done
echo "installation is complete"
