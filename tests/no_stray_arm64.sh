#!/bin/sh
# no_stray_arm64.sh OBJDUMP OBJECTS - checks that no code requires more than the
# baseline instructions of aarch64.
#
# OBJECTS is the directory of the library's object files, structured like src/.
# Instructions of armv8-a, including NEON, are allowed everywhere. Later ones that
# kernels are compiled for (sdot and udot, and with them atomics, CRC and rounding
# products) are allowed only in kernels/arm/<family>_dotprod.o, whose functions
# are chosen at run time.
# ctest: skip-asan skip-ref
set -u
export LC_ALL=C
objdump=$1 failed=0 n=0

# Reads the output of objdump -d.
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
            echo "$o has instructions outside of baseline aarch64:"
            "$objdump" -d --no-show-raw-insn "$o" | late
            failed=1
            ;;
        esac
    fi
done
# Checks that the rule finds something.
[ "${found:-0}" -gt 0 ] || { echo "no sdot in $n objects of $2"; exit 1; }
[ $failed = 0 ] && echo "no stray instructions in $n objects"
exit $failed
