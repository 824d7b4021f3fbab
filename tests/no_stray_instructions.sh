#!/bin/sh
# no_stray_instructions.sh OBJECTS - checks that no instruction appears outside of
# its level.
#
# OBJECTS is the directory of the library's object files, structured like src/.
# Baseline x86-64 (SSE2) is allowed everywhere. VEX-coded instructions, later SSE
# and BMI are allowed only in kernels/x86/<family>_<level>.o; masks and zmm only
# where the level begins with avx512 or is amx, tiles only there, vpdp* only with
# vnni in the name of the level or function, and VBMI's byte permutations only in
# functions with vbmi in their name.
#
# `no_stray_instructions.sh --self` tests the rules on made-up disassembly.
# ctest: skip-asan skip-ref
set -u
export LC_ALL=C

# Reads the output of objdump -d for one object, named in OBJECT.
look()
{
    awk -v object="$1" '
    function say(what) {
        print object ": " name ": " what ": " mnemonic " " operands
        bad = 1
    }
    BEGIN {
        kernel = object ~ /(^|\/)kernels\/x86\//
        tiles = kernel && object ~ /_amx\./
        wide = kernel && object ~ /_(avx512[a-z]*|amx)\./
        vnni = kernel && object ~ /_[a-z0-9]*vnni[a-z0-9]*\./
        # SSE3, SSSE3, SSE4.1 and 4.2; ABM, BMI 1 and 2, MOVBE, ADX; AES etc.
        # Without tzcnt: older CPUs execute it as bsf, and compilers rely on
        # that.
        late = "^(addsubp[sd]|haddp|hsubp|movddup|movs[hl]dup|lddqu|" \
            "fisttp|pshufb|phadd|phsub|pmaddubsw|pmulhrsw|psign[bwd]|" \
            "pabs[bwd]|palignr|pmulld|pmuldq|dpp[sd]|mpsadbw|" \
            "pmin(sb|uw|ud|sd)|pmax(sb|uw|ud|sd)|round[sp][sd]|insertps|" \
            "pinsr[bdq]|extractps|pextr[bdq]|pmov[sz]x|ptest|pcmpeqq|" \
            "packusdw|movntdqa|p?blend|pcmpgtq|pcmp[ei]str|crc32|popcnt|" \
            "lzcnt|andn[lq]?$|bextr|bls(i|r|msk)|bzhi|mulx|pdep|pext[lq]?$|rorx|" \
            "s[ah][lr]x|movbe|ad[co]x|aes|pclmul|sha1|sha256|gf2p8)"
    }
    /^[0-9a-f]+ <.*>:$/ {
        name = $2
        gsub(/[<>:]/, "", name)
        next
    }
    {
        # "  4f:<tab>vaddps %ymm0,%ymm1,%ymm2"
        if (split($0, part, "\t") < 2) next
        text = part[2]
        while (text ~ /^(lock|rep[nz]*|bnd|notrack|data16|cs|ds|\{[a-z0-9]+\}) /)
            sub(/^[^ ]+ +/, "", text)
        mnemonic = text
        sub(/ .*/, "", mnemonic)
        operands = substr(text, length(mnemonic) + 1)
        gsub(/^ +/, "", operands)
        sub(/ *#.*/, "", operands)
        vex = mnemonic ~ /^v/ && mnemonic !~ /^ver[rw]$/ || \
            operands ~ /%[yz]mm/ || mnemonic ~ /^k[a-z]+[bwdq]$/
        if (mnemonic == "pextrw" && operands ~ /\)$/) vex = 1 # to memory
        if (!kernel && (vex || mnemonic ~ late)) say("outside of kernels/x86")
        if (kernel && !wide && (operands ~ /%zmm|%k[0-7]|[xy]mm(1[6-9]|[23][0-9])/ \
            || mnemonic ~ /^k[a-z]+[bwdq]$/))
            say("AVX-512 in another level")
        if (mnemonic ~ /^vpdp(busd|wssd)/ && !vnni && name !~ /vnni/) say("VNNI in another level")
        if (mnemonic ~ /^(tile|tdp|tcmm|(ld|st)tilecfg)/ && !tiles)
            say("AMX in another level")
        if (mnemonic ~ /^vperm([it]2)?b$|^vpmultishift/ && name !~ /vbmi/)
            say("VBMI in a function without vbmi in its name")
    }
    END { exit bad }'
}

# ---- whether it can fail -----------------------------------------------------

failed=0
expect() # 0|1 object function instruction
{
    printf '0000000000000000 <%s>:\n   0:\t%s\n' "$3" "$4" |
        look "$2" >/dev/null
    [ $? = "$1" ] || { echo "self: $2 <$3> $4 should give $1"; failed=1; }
}

self()
{
    a=core/ctx.c.o b=kernels/x86/gemm_avx2.c.o c=kernels/x86/gemm_avx512.c.o
    d=kernels/x86/dot_avx512vnni.c.o e=kernels/x86/dot_amx.c.o
    expect 0 $a f 'addps  %xmm0,%xmm1'
    expect 0 $a f 'rep stos %al,%es:(%rdi)'
    expect 0 $a f 'tzcnt  %rax,%rax'
    expect 0 $a f 'pshufd %xmm0,%xmm0'
    expect 0 $a f 'pextrw %xmm0,%edx'
    expect 1 $a f 'pextrw %xmm0,(%rdx)'
    expect 1 $a f 'pext   %eax,%ecx,%edx'
    expect 0 $a f 'bsr    %rax,%rax'
    expect 0 $a f 'xgetbv'
    expect 0 $a f 'call   10 <lb_vpermb>'
    expect 1 $a f 'vaddps %xmm0,%xmm1,%xmm2'
    expect 1 $a f 'vzeroupper'
    expect 1 $a f 'vaddps %ymm0,%ymm1,%ymm2'
    expect 1 $a f 'kmovw  %eax,%k1'
    expect 1 $a f 'pshufb %xmm0,%xmm1'
    expect 1 $a f 'pmulld %xmm0,%xmm1'
    expect 1 $a f 'roundsd %xmm0,%xmm0'
    expect 1 $a f 'popcnt %rax,%rax'
    expect 1 $a f 'lzcnt  %rax,%rax'
    expect 1 $a f 'shlx   %eax,%ecx,%edx'
    expect 1 $a f 'andn   %eax,%ecx,%edx'
    expect 0 $a f 'andnps %xmm0,%xmm1'
    expect 0 $b f 'vfmadd231ps %ymm0,%ymm1,%ymm15'
    expect 0 $b f 'shlx   %eax,%ecx,%edx'
    expect 1 $b f 'vaddps %zmm0,%zmm1,%zmm2'
    expect 1 $b f 'vmovups (%rax),%ymm2{%k1}{z}'
    expect 1 $b f 'vaddps %ymm16,%ymm1,%ymm2'
    expect 0 $c f 'vaddps %zmm0,%zmm1,%zmm31'
    expect 1 $c f 'vpdpbusd %zmm0,%zmm1,%zmm2'
    expect 0 $d f 'vpdpbusd %zmm0,%zmm1,%zmm2'
    expect 1 $d f 'vpermb %zmm0,%zmm1,%zmm2'
    expect 0 $e f 'vaddps %zmm0,%zmm1,%zmm31'
    expect 0 $e f 'tdpbsud %tmm6,%tmm4,%tmm0'
    expect 0 $e f 'tilerelease'
    expect 1 $d f 'tileloadd (%rax,%rdx,1),%tmm4'
    expect 1 $a f 'ldtilecfg (%rax)'
    expect 0 $d decode_vbmi 'vpermb %zmm0,%zmm1,%zmm2'
    return $failed
}

if [ "${1-}" = --self ]; then
    self
    exit
fi

objects=${1:?usage: no_stray_instructions.sh OBJECTS | --self}
self || exit 1
cd "$objects" || exit 1
n=0
for o in $(find . -name '*.o' | LC_ALL=C sort); do
    objdump -d --no-show-raw-insn "$o" | look "${o#./}" || failed=1
    n=$((n + 1))
done
[ $n -gt 0 ] || { echo "no objects in $objects"; exit 1; }
[ $failed = 0 ] && echo "no stray instructions in $n objects"
exit $failed
