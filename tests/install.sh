#!/usr/bin/env bash
# install.sh - tests the installed library as users see it.
#
# Installs into a temporary directory, builds README's program with pkg-config
# and with find_package, shared and static, in C and in C++; compiles each header
# alone; and compares the exported symbols with the headers.
set -euo pipefail
export LC_ALL=C
root=$(cd "$(dirname "$0")/.." && pwd)
# make and pkg-config do not support blanks in paths.
case ${TMPDIR-} in *[[:space:]]*) unset TMPDIR ;; esac
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
prefix=$tmp/prefix
checks=0

die()
{
    echo "install.sh: $*" >&2
    exit 1
}

ok()
{
    checks=$((checks + 1))
    echo "install.sh: $*"
}

make -C "$root" install PREFIX="$prefix" >"$tmp/log" 2>&1 ||
    die "make install: $(cat "$tmp/log")"
lib=$(dirname "$(find "$prefix" -name liblowbit.a)")
include=$prefix/include
version=$(sed -n 's/.*LB_VERSION_STRING "\(.*\)"/\1/p' "$include/lowbit.h")
export PKG_CONFIG_PATH=$lib/pkgconfig
ok "make install PREFIX=..., version $version"

# ---- the command

[ "$("$prefix/bin/lowbit" --version)" = "lowbit $version" ] ||
    die "bin/lowbit --version"
share=$prefix/share
for f in bash-completion/completions/lowbit zsh/site-functions/_lowbit \
    fish/vendor_completions.d/lowbit.fish man/man1/lowbit.1 \
    man/man1/lowbit-quantize.1; do
    [ -s "$share/$f" ] || die "share/$f is not installed"
done
ok "the command, its completion and manual pages"

# ---- pkg-config

cd "$tmp"
# README shows the program examples/hello.c.
# shellcheck disable=SC2016
sed -n '/^```c$/,/^```$/p' "$root/README.md" | sed '1d;$d' >hello.c
tail -n +2 "$root/examples/hello.c" | cmp -s - hello.c ||
    die "the program in README.md is not examples/hello.c"
for pc in lowbit lowbit-core; do
    [ "$(pkg-config --modversion $pc)" = "$version" ] ||
        die "$pc.pc has another version than lowbit.h"
done
# The words of a user's command line, split on purpose.
# shellcheck disable=SC2046
cc hello.c $(pkg-config --cflags --libs lowbit) -o hello
LD_LIBRARY_PATH=$lib ./hello >expected
[ -s expected ] || die "hello printed nothing"
# The core needs no other library and can be linked statically.
# shellcheck disable=SC2046
cc hello.c $(pkg-config --cflags --libs lowbit-core) -o hello_core
LD_LIBRARY_PATH=$lib ./hello_core | cmp - expected
# shellcheck disable=SC2046
cc -static hello.c $(pkg-config --cflags --static --libs lowbit-core) \
    -o hello_static
./hello_static | cmp - expected
case " $(pkg-config --static --libs lowbit) " in
*" -llowbit-io -llowbit "*" -lz "*) ;;
*) die "lowbit.pc: $(pkg-config --static --libs lowbit)" ;;
esac
ok "hello.c with pkg-config, shared and static, with and without files"

# ---- find_package

mkdir project
cat >project/CMakeLists.txt <<EOF
cmake_minimum_required(VERSION 3.13)
project(user C CXX)
find_package(lowbit ${version%.*} REQUIRED)
foreach(lib lowbit lowbit_static lowbit_io lowbit_io_static)
  add_executable(hello_\${lib} ../hello.c)
  target_link_libraries(hello_\${lib} lowbit::\${lib})
  add_executable(cxx_\${lib} cxx.cc)
  target_link_libraries(cxx_\${lib} lowbit::\${lib})
endforeach()
EOF
cat >project/cxx.cc <<'EOF'
#include <lowbit_ext.h>
int main()
{
    lb_ctx *cx = lb_open(nullptr);
    const int64_t dim[] = {2, 3};
    lb_array *a = lb_iota(cx, LB_I32, lb_shape_make(2, dim), 1);
    const int64_t sum = lb_item_int(cx, lb_reduce_sum(cx, a, nullptr));
    const bool good = sum == 6 && lb_find_primitive(cx, "add");
    lb_close(cx);
    return good ? 0 : 1;
}
EOF
cmake -S project -B project/build -DCMAKE_PREFIX_PATH="$prefix" >log 2>&1 ||
    die "find_package: $(cat log)"
cmake --build project/build >log 2>&1 || die "find_package: $(cat log)"
for p in lowbit lowbit_static lowbit_io lowbit_io_static; do
    "project/build/hello_$p" | cmp - expected
    "project/build/cxx_$p" || die "cxx_$p failed"
done
sed "s/lowbit ${version%.*} REQUIRED/lowbit 99.0 REQUIRED/" -i \
    project/CMakeLists.txt
if cmake -S project -B project/other -DCMAKE_PREFIX_PATH="$prefix" \
    >log 2>&1; then
    die "find_package(lowbit 99.0) was satisfied with $version"
fi
ok "find_package, C and C++, shared and static"

# ---- headers alone

mapfile -t headers < <(find "$include" -name 'lowbit*.h' ! -name lowbit_mpi.h | sort)
[ ${#headers[@]} -gt 1 ] || die "no headers are installed"
strict="-Wall -Wextra -Wpedantic -Werror -fsyntax-only"
for path in "${headers[@]}"; do
    header=${path##*/}
    for std in c++11 c++20; do
        # shellcheck disable=SC2086
        echo "#include <$header>" | c++ -std=$std $strict -I"$include" -x c++ -
    done
    for std in c11 c2x; do
        # shellcheck disable=SC2086
        echo "#include <$header>" | cc -std=$std $strict -I"$include" -x c -
    done
done
ok "headers alone as C11, C2x, C++11, C++20"

# ---- symbols

dynamic() # TAG FILE
{
    readelf -d "$2" | sed -n "s/.*$1.*\[\(.*\)\]/\1/p"
}

for name in lowbit lowbit-io; do
    so=$lib/lib$name.so
    soname=$(dynamic SONAME "$so")
    [ "$soname" = lib$name.so.0 ] || die "SONAME is '$soname'"
    [ -e "$lib/$soname" ] || die "$soname is not installed"
    for n in $(dynamic NEEDED "$so"); do
        case $name-$n in
        *-libc.so.* | *-libm.so.* | *-libpthread.so.* | *-ld-linux*) ;;
        lowbit-io-liblowbit.so.0 | lowbit-io-libz*.so.*) ;;
        lowbit-io-libpcre2-8.so.* | lowbit-io-libxxhash.so.*) ;;
        *) die "lib$name.so needs $n" ;;
        esac
    done
done

# Names of the functions that the headers mark LB_API.
cat "${headers[@]}" | tr '\n' ' ' |
    sed 's/LB_API/\n&/g' |
    sed -n 's/^LB_API [^(;]*[ *]\(lb_[a-z0-9_]*\)(.*/\1/p' | sort -u >declared
# Symbols that the libraries share have the version LOWBIT_PRIVATE.
nm -D --defined-only "$lib/liblowbit.so" "$lib/liblowbit-io.so" |
    awk 'NF == 3 && $2 != "A"' >symbols
awk '$3 !~ /@@LOWBIT_/' symbols >unversioned
[ ! -s unversioned ] || die "without a version: $(cat unversioned)"
awk '$3 !~ /@@LOWBIT_PRIVATE$/ { print $3 }' symbols | sed 's/@.*//' |
    sort -u >exported
diff declared exported >log ||
    die "declared LB_API (<) and exported (>) differ: $(grep '^[<>]' log)"
# A static library hides nothing: its symbols need our prefix.
nm -g --defined-only "$lib/liblowbit.a" "$lib/liblowbit-io.a" 2>/dev/null |
    awk 'NF == 3 && $3 !~ /^lb_/ { print $3 }' >foreign
[ ! -s foreign ] || die "without lb_ in a static library: $(cat foreign)"
ok "$(wc -l <declared) functions, all and only those, as LOWBIT_*"

# ---- MPI, if installed: only liblowbit-mpi may depend on it

! readelf -d "$lib/liblowbit.so" "$lib/liblowbit-io.so" | grep -q libmpi ||
    die "other libraries than liblowbit-mpi need MPI"
! nm -D "$lib/liblowbit.so" "$lib/liblowbit-io.so" | grep -q MPI_ ||
    die "other libraries than liblowbit-mpi refer to MPI"
if [ -e "$lib/liblowbit-mpi.so" ]; then
    cat >mesh.c <<'EOF'
#include <lowbit_mpi.h>
static int main_of_rank(lb_comm *comm, void *user)
{
    (void)user;
    return comm->size == 1 ? 0 : 1;
}
int main(int argc, char **argv)
{
    return lb_mpi_run(&argc, &argv, main_of_rank, NULL);
}
EOF
    # shellcheck disable=SC2046
    mpicc mesh.c $(pkg-config --cflags --libs lowbit-mpi) -o mesh
    LD_LIBRARY_PATH=$lib ./mesh || die "a program of MPI, alone"
    mkdir mpi
    cat >mpi/CMakeLists.txt <<'EOF'
cmake_minimum_required(VERSION 3.13)
project(user C)
find_package(lowbit REQUIRED COMPONENTS mpi)
add_executable(mesh ../mesh.c)
target_link_libraries(mesh lowbit::lowbit_mpi)
EOF
    cmake -S mpi -B mpi/build -DCMAKE_PREFIX_PATH="$prefix" >log 2>&1 ||
        die "COMPONENTS mpi: $(cat log)"
    cmake --build mpi/build >log 2>&1 || die "COMPONENTS mpi: $(cat log)"
    LD_LIBRARY_PATH=$lib mpi/build/mesh || die "a program of MPI, by find_package"
    nm -D --defined-only "$lib/liblowbit-mpi.so" |
        awk 'NF == 3 && $2 != "A" && $3 !~ /^lb_mpi_.*@@LOWBIT_MPI_/' >foreign
    [ ! -s foreign ] || die "liblowbit-mpi.so exports $(cat foreign)"
    ok "liblowbit-mpi, with pkg-config and find_package"
fi

# ---- staged, as packagers do

make -C "$root" install PREFIX=/usr DESTDIR="$tmp/stage" >log 2>&1 ||
    die "make install DESTDIR=: $(cat log)"
pc=$(find "$tmp/stage/usr" -name lowbit.pc)
grep -q '^prefix=/usr$' "$pc" || die "lowbit.pc: $(grep prefix= "$pc")"
[ -e "$tmp/stage/usr/include/lowbit.h" ] || die "DESTDIR was not obeyed"
ok "DESTDIR"

echo "install.sh: $checks checks passed"
