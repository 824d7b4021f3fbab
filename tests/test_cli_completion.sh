#!/usr/bin/env bash
# test_cli_completion.sh PROGRAM - completion in bash, and in zsh and fish if they
# are installed; manual pages. Run it in the project's root.
set -euo pipefail
# shellcheck source=tests/cli.bash
. tests/cli.bash

run 0 completion --help
has "usage: lowbit completion SHELL [OPTION]..."
refused 2 "completion takes one argument, SHELL (got 0)" completion
refused 2 "completion takes bash, zsh or fish, not 'tcsh'" completion tcsh
verbs=$("$program" --help | sed -n 's/^  \([a-z]*\) .*/\1/p')

# ---- bash --------------------------------------------------------------------

"$program" completion bash >"$tmp/lowbit.bash"
# shellcheck disable=SC1091
. "$tmp/lowbit.bash"

completes() # WANT WORD...: the last word is the one to complete
{
    local want=$1
    shift
    COMP_WORDS=(lowbit "$@")
    COMP_CWORD=$#
    COMPREPLY=()
    _lowbit || true # it fails if there is nothing to complete
    checks=$((checks + 1))
    [ "${COMPREPLY[*]}" = "$want" ] || die "'$*': completes '${COMPREPLY[*]}'"
}

touch "$tmp/out" "$tmp/err"
completes "quantize" q
completes "convert check cpu completion" c
completes "--help --version" --
completes "" diff --jX
completes "--jobs --json" diff --j
completes "--block-size" quantize --bl
completes "native bnb bitnet eformer mlx gptq awq compressed-tensors fp8" quantize --layout ""
completes "bnb" quantize x --layout bn
completes "iq4_nl" bench --type iq
completes "" bench -j ""
completes "bash zsh fish" completion ""
completes "fish" completion f
completes "bench" help b
completes "" cpu tests/test_cli.
completes "bitnet" quantize --layout = bit
completes "native bnb bitnet eformer mlx gptq awq compressed-tensors fp8" quantize --layout =
completes "tests/test_cli.sh" info tests/test_cli.
completes "tests/test_cli.sh" quantize -o tests/test_cli.
for v in $verbs; do
    completes "--help" "$v" --hel
done

# ---- other shells, if installed ----------------------------------------------

"$program" completion zsh >"$tmp/_lowbit"
"$program" completion fish >"$tmp/lowbit.fish"
for v in $verbs; do
    grep -q "^    $v)" "$tmp/_lowbit" || die "zsh: no $v"
    grep -q "__fish_seen_subcommand_from $v' -l help" "$tmp/lowbit.fish" ||
        die "fish: no $v"
done
if command -v zsh >/dev/null; then
    zsh -n "$tmp/_lowbit" || die "zsh: syntax error"
    checks=$((checks + 1))
fi
for shell in _lowbit lowbit.fish; do
    grep -q 'bash zsh fish' "$tmp/$shell" || die "$shell: no shells"
done
if command -v fish >/dev/null; then
    fish --no-config -c "source '$tmp/lowbit.fish'
        complete -C 'lowbit quantize --layo'
        complete -C 'lowbit quantize --layout b'
        complete -C 'lowbit completion z'
        complete -C 'lowbit help merg'" >"$tmp/out" 2>"$tmp/err"
    has "zsh"
    has "merge"
    has "--layout"
    has "bitnet"
    has "bnb"
fi

# ---- manual pages ------------------------------------------------------------

refused 2 "unknown verb 'inof'" --manual inof
for v in $verbs; do
    run 0 --manual "$v"
    has "lowbit-$v - "
    has "*--help*"
    if command -v scdoc >/dev/null; then
        scdoc <"$tmp/out" >"$tmp/page" || die "$v: scdoc rejects the manual page"
        grep -q '^\.SH OPTIONS' "$tmp/page" || die "$v: no options"
        ! grep '^\.[a-z]' "$tmp/page" | grep -v '^\.\(ie\|el\|ad\|nh\|nf\|fi\|ft\)' ||
            die "$v: text that roff interprets as a command"
        checks=$((checks + 1))
    fi
    grep -q "^\*$v\*$" docs/lowbit.1.scd || die "lowbit.1.scd: no $v"
done

finish
