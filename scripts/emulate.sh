#!/bin/sh
# Runs the tests of AVX-512 and GFNI code on an emulated processor that has both (Bochs' Ice Lake), for machines without them. It checks
# results, not speed.
#
#   scripts/emulate.sh [TEST...]     all tests of the crates gost and engine, or those whose names have one of these in them
#
# Each test program is linked statically and started by a kernel of a few system calls (scripts/emulate): whole systems take minutes
# to start in this emulator, and Linux 6.1 never does.
#
# Needs Bochs 2.8 or later (Debian 12 has 2.7, which computes GFNI wrong) and a C compiler. BOCHS=PATH selects another than the one in
# PATH, BOCHS_SHARE=FOLDER its BIOS. A few minutes, with two cores.
set -eu
cd "$(dirname "$0")/.."

bochs=${BOCHS:-bochs}
share=${BOCHS_SHARE:-/usr/share/bochs}
limit=${EMULATE_LIMIT:-1200}

say() { echo "emulate: $*" >&2; }
fail() { say "$*"; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

[ "$(uname -m)" = x86_64 ] || fail "the tested code is for x86-64, and is built on it"
bios=$share/BIOS-bochs-latest
# It starts without a screen, but requires this one.
screen=$share/VGABIOS-lgpl-latest
[ -e "$screen" ] || screen=$screen.bin
if ! have "$bochs" || [ ! -e "$bios" ] || [ ! -e "$screen" ]; then
    fail "Bochs is missing; give: sudo apt-get install bochs bochsbios vgabios   (or set BOCHS and BOCHS_SHARE)"
fi
version=$("$bochs" --help 2>&1 | sed -n 's/.*Bochs x86 Emulator \([0-9.]*\).*/\1/p')
case $version in
1.* | 2.[0-7] | 2.[0-7].*)
    fail "Bochs $version computes GFNI wrong (GF2P8AFFINEQB), so correct code would fail; 2.8 or later is needed (BOCHS=PATH)" ;;
esac
have cc || fail "a C compiler is missing; give: sudo apt-get install gcc"

work=$(mktemp -d "${TMPDIR:-/tmp}/cipherbench-emulate.XXXXXX")
# Background processes do not receive an interrupt by themselves.
trap 'pkill -f "$work/" || true; rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

from=scripts/emulate
cc -m64 -std=c11 -O2 -ffreestanding -fno-pic -mno-red-zone -mgeneral-regs-only -fno-stack-protector -fcf-protection=none \
    -Wall -Wextra -Werror -c "$from/kernel.c" -o "$work/kernel.o"
cc -m64 -c "$from/start.S" -o "$work/start.o"
cc -m64 -c "$from/boot.S" -o "$work/boot.o"
ld -Ttext 0x7c00 -e boot --oformat binary "$work/boot.o" -o "$work/boot"
ld -T "$from/kernel.ld" --oformat binary "$work/start.o" "$work/kernel.o" -o "$work/kernel"
# The first 64 sectors of each disk.
cat "$work/boot" "$work/kernel" > "$work/head"
[ "$(wc -c < "$work/head")" -le 32768 ] || fail "the kernel is larger than what scripts/emulate/boot.S reads"
truncate -s 32768 "$work/head"

say "building the tests"
target=x86_64-unknown-linux-gnu
# An explicit target keeps its flags from build scripts, whose programs must not be static. Optimized, since the tests are of the vector
# code that the compiler generates; with the checks of a test.
RUSTFLAGS="-C target-feature=+crt-static -C debug-assertions=on -C overflow-checks=on" \
    cargo test --release --locked --target "$target" --target-dir target/emulate --no-run --message-format json \
    --package cipherbench-gost --package cipherbench-engine --lib --test modes --test engines \
    > "$work/built" || fail "the tests do not build"
sed -n 's/.*"name":"\([^"]*\)".*"executable":"\([^"]*\)".*/\1 \2/p' "$work/built" > "$work/programs"
[ -s "$work/programs" ] || fail "cargo named no program"

# Skipped: tests that start threads or other programs, or read files of the repository. None of them tests instructions.
skipped="many_threads openssl the_shipped_packets"

debugger=
if "$bochs" --help 2>&1 | grep -q -e '-rc filename'; then
    printf 'c\nq\n' > "$work/commands"
    debugger="-rc $work/commands"
fi

sound=
if "$bochs" --help features 2>&1 | grep -q '^sb16'; then
    sound='sound: driver=dummy'
fi

# Runs one program on its own machine; its output goes to $work/NAME.out.
emulate() {
    name=$1
    program=$2
    shift 2
    words=$*
    strip -o "$work/$name.program" "$program"
    for word in $skipped; do
        words="$words --skip $word"
    done
    {
        # shellcheck disable=SC2086 # one word each
        printf '%s\0' "$name" --color never $words
        printf '\0'
    } > "$work/$name.words"
    truncate -s 4096 "$work/$name.words"
    cat "$work/head" "$work/$name.words" "$work/$name.program" > "$work/$name.disk"
    # Whole cylinders of 16 heads and 63 sectors.
    truncate -s %516096 "$work/$name.disk"
    cat > "$work/$name.machine" <<MACHINE
config_interface: textconfig
cpu: model=corei7_icelake_u, count=1, ips=100000000
memory: guest=2048, host=2048
romimage: file=$bios
vgaromimage: file=$screen
ata0-master: type=disk, mode=flat, path=$work/$name.disk
boot: disk
port_e9_hack: enabled=1
clock: sync=none, time0=1700000000
panic: action=fatal
$sound
error: action=ignore
info: action=ignore
log: $work/$name.log
MACHINE
    # Displays differ by how Bochs was built. None of them is used: rfb would listen at a port, so it gets its own network.
    for display in nogui 'rfb, options="timeout=0"'; do
        # shellcheck disable=SC2086 # a flag and its file
        timeout "$limit" unshare --map-root-user --net "$bochs" -q -f "$work/$name.machine" $debugger \
            "display_library: $display" < /dev/null > "$work/$name.out" 2>&1 || true
        grep -q "display library .* not available" "$work/$name.out" 2>/dev/null || break
    done
}

# Whether all tests of a program passed; reports those that did not.
judge() {
    name=$1
    result=$(tr -d '\r' < "$work/$name.out" | grep -a '^test result: ' || true)
    if grep -a -q '^SKIPPED: avx512' "$work/$name.out"; then
        say "$name: the emulated processor lacks instructions"
        return 1
    fi
    case $result in
    'test result: ok.'*)
        echo "$name: ${result#test result: }"
        ;;
    *)
        grep -a -v '^[0-9]\{11\}' "$work/$name.out" | tail -n 60 >&2
        tail -n 3 "$work/$name.log" >&2
        say "$name: failed, or did not end within $limit s (EMULATE_LIMIT); above is the end of its output"
        return 1
        ;;
    esac
}

say "skipped, since they need threads, other programs or files: *$(echo "$skipped" | sed 's/ /*, */g')*"
say "running $(wc -l < "$work/programs") programs on an emulated Ice Lake; this takes minutes"
before=
while read -r name program; do
    # Two in parallel.
    emulate "$name" "$program" "$@" &
    [ -z "$before" ] || wait "$before"
    before=$!
done < "$work/programs"
wait

failed=
tests=0
while read -r name _; do
    judge "$name" || failed="$failed $name"
    passed=$(sed -n 's/^test result: ok\. \([0-9]*\) passed.*/\1/p' "$work/$name.out")
    tests=$((tests + ${passed:-0}))
done < "$work/programs"
[ -z "$failed" ] || fail "failed:$failed"
[ "$tests" -gt 0 ] || fail "no test has this name: $*"
say "all $tests tests passed with AVX-512 and GFNI"
