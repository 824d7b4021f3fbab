#!/bin/sh
# no_stray_arm64.sh OBJDUMP OBJECTS - no instruction that an aarch64 may lack.
#
# OBJECTS is where the library's object files lie, as src/ does. What armv8-a
# has, NEON with it, may stand anywhere. What came later and kernels are
# compiled for, sdot and udot and with them atomics, CRC and rounding products,
# only in kernels/arm/<family>_dotprod.o, whose functions are chosen by what the
# CPU has.
# ctest: skip-asan skip-ref
set -u
export LC_ALL=C
objdump=$1 failed=0 n=0

# Reads what objdump -d says.
late()
{
    awk -F '\t' '$2 ~ /^([su]dot|[su]mmla|usdot|bf[dm]|crc32|sqrdml|cas|swp|ld(add|clr|eor|set|[su]m)[a-z]*$|fml[as]l|st1w|ld1w)/ {
        print; bad = 1 } END { exit !bad }'
}

cd "$2" || exit 1
for o in $(find . -name '*.o' | LC_ALL=C sort); do
    n=$((n + 1))
    if "$objdump" -d --no-show-raw-insn "$o" | late >/dev/null; then
        found=$((${found:-0} + 1))
        case $o in
        ./kernels/arm/*_dotprod.c.o) ;;
        *)
            echo "$o has instructions that not every aarch64 has"
            "$objdump" -d --no-show-raw-insn "$o" | late
            failed=1
            ;;
        esac
    fi
done
# The rule can see what it looks for.
[ "${found:-0}" -gt 0 ] || { echo "no sdot in $n objects of $2"; exit 1; }
[ $failed = 0 ] && echo "no stray instructions in $n objects"
exit $failed
