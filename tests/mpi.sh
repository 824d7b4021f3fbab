#!/usr/bin/env bash
# mpi.sh BUILD [--short] - tests of meshes as processes, with every MPI that is
# installed.
#
# Compiles each test that includes ranks.h with that MPI's compiler against
# BUILD's static library, and runs it on 1, 2, 4 and 8 processes (MPICH: 4). With
# --short: only the first MPI, 4 processes, and law 7 on one mesh.
set -euo pipefail
export LC_ALL=C
root=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "$1" && pwd)
short=${2:+yes}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$root"
flags="-std=c11 -O2 -D_GNU_SOURCE -DLB_TEST_MPI -Iinclude -Isrc -Itests -Iexamples"
runs=0
kinds=0

die()
{
    echo "mpi.sh: $*" >&2
    exit 1
}

# Open MPI needs two variables to run as root, and an option if there are fewer
# cores than ranks.
start()
{
    local kind=$1 n=$2
    shift 2
    case $kind in
    openmpi)
        OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
            timeout 600 mpirun.openmpi --oversubscribe -np "$n" "$@" </dev/null ;;
    mpich) timeout 600 mpirun.mpich -np "$n" "$@" </dev/null ;;
    esac
}

# When a rank ends, the others must not wait for it forever. It takes a second or
# two; many more are allowed on a busy machine.
ends()
{
    local kind=$1 how=$2 begin=$SECONDS named='rank 1 '
    # MPICH names the process that was killed, not the rank.
    [ "$kind $how" != 'mpich dies' ] || named='EXIT CODE: 9'
    ! start "$kind" 4 "$tmp/$kind/mpi_ends" "$how" >"$tmp/out" 2>&1 ||
        die "$kind: exit status 0 although a rank $how"
    [ $((SECONDS - begin)) -le 60 ] ||
        die "$kind: a rank that $how is noticed after $((SECONDS - begin)) s"
    grep -q "$named" "$tmp/out" ||
        die "$kind: a rank that $how is not named: $(cat "$tmp/out")"
    runs=$((runs + 1))
}

# Exchanges of more than 2^31 bytes need memory.
has_memory()
{
    awk '/^MemAvailable/ { exit !($2 > 12e6) }' /proc/meminfo ||
        { echo "mpi.sh: mpi_long skipped: it needs 12 GB of memory"; return 1; }
}

for kind in openmpi mpich; do
    command -v mpicc.$kind >/dev/null || continue
    [ -z "$short" ] || [ $kinds = 0 ] || continue
    kinds=$((kinds + 1))
    mkdir "$tmp/$kind"
    sizes='1 2 4 8'
    [ $kind = openmpi ] && [ -z "$short" ] || sizes=4
    # shellcheck disable=SC2086 # split on purpose
    mpicc.$kind $flags src/mpi/comm_mpi.c tests/mpi/mpi_ends.c \
        "$build/liblowbit.a" -lm -lpthread -o "$tmp/$kind/mpi_ends"
    while read -r source; do
        name=$(basename "$source" .c)
        io=
        case $name in
        test_io_*)
            [ -e "$build/liblowbit-io.a" ] || continue
            io="$build/liblowbit-io.a -lz -lpcre2-8 -lxxhash" ;;
        esac
        # Such short pieces that every test sends several.
        # shellcheck disable=SC2086
        mpicc.$kind $flags -DLB_MPI_PIECE=30000 src/mpi/comm_mpi.c "$source" \
            "$build/liblb_test_shared.a" ${io%% *} "$build/liblowbit.a" \
            ${io#* } -lm -lpthread -o "$tmp/$kind/$name"
        few=
        [ "$name$short" != test_law_shardsyes ] || few=--few
        for n in $sizes; do
            start $kind "$n" "$tmp/$kind/$name" $few >"$tmp/out" 2>&1 ||
                die "$kind, $n ranks: $name: $(cat "$tmp/out")"
            echo "$kind, $n ranks, $SECONDS s: $(sort -u "$tmp/out" | paste -sd ';')"
            runs=$((runs + 1))
        done
    done < <(grep -lE '^#include "ranks.h"' tests/test_*.c)
    ends $kind fails
    ends $kind lacks
    ends $kind dies
    if [ -z "$short" ] && has_memory; then
        # shellcheck disable=SC2086
        mpicc.$kind $flags src/mpi/comm_mpi.c tests/mpi/mpi_long.c \
            "$build/liblowbit.a" -lm -lpthread -o "$tmp/$kind/mpi_long"
        start $kind 2 "$tmp/$kind/mpi_long" >"$tmp/out" 2>&1 ||
            die "$kind, 2 ranks: mpi_long: $(cat "$tmp/out")"
        echo "$kind, 2 ranks, $SECONDS s: $(cat "$tmp/out")"
        runs=$((runs + 1))
    fi
    # shellcheck disable=SC2086
    mpicc.$kind $flags -DWITH_MPI src/mpi/comm_mpi.c examples/mlp_mesh.c \
        "$build/liblowbit.a" -lm -lpthread -o "$tmp/$kind/mlp_mesh"
    for n in 1 2 4; do
        start $kind $n "$tmp/$kind/mlp_mesh" >"$tmp/out" 2>&1 ||
            die "$kind, $n ranks: mlp_mesh: $(cat "$tmp/out")"
        echo "$kind, $n ranks, $SECONDS s: $(tail -n 1 "$tmp/out")"
        runs=$((runs + 1))
    done
done
[ $kinds -gt 0 ] || die "no MPI installed (run tools/setup mpi)"
echo "mpi.sh: $runs runs, $kinds kinds of MPI, $SECONDS s"
