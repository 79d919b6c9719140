# Has cargo build for every Linux with glibc 2.31 or newer (Debian 11, Ubuntu 20.04, RHEL 9), whatever this machine has:
#
#   . scripts/glibc.sh     in the top folder, before `cargo build --target "$triple"`
#
# zig has the headers and symbols of every glibc. It compiles the C code and links; rustc compiles the rest as always. The
# only header that zig takes from the machine is that of Intel's multi-buffer library. What is built goes to
# target/portable.
# shellcheck shell=sh disable=SC2034 # read by the scripts that source it
glibc=2.31
triple=x86_64-unknown-linux-gnu
[ "$(uname -m)" = x86_64 ] || { echo "glibc: programs for every Linux are built on x86-64 only" >&2; exit 1; }
zig=$(scripts/tools.sh zig)/zig
CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/portable
mkdir -p "$CARGO_TARGET_DIR/include"
CARGO_TARGET_DIR=$(cd "$CARGO_TARGET_DIR" && pwd)
if [ -e /usr/include/intel-ipsec-mb.h ]; then
    ln -sf /usr/include/intel-ipsec-mb.h "$CARGO_TARGET_DIR/include/"
fi
# zig knows no target of four words, which the crate `cc` names.
cat > "$CARGO_TARGET_DIR/cc" <<END
#!/bin/sh
for word; do
    shift
    case \$word in
    --target=*) ;;
    *) set -- "\$@" "\$word" ;;
    esac
done
exec "$zig" cc -target x86_64-linux-gnu.$glibc -isystem "$CARGO_TARGET_DIR/include" "\$@"
END
chmod +x "$CARGO_TARGET_DIR/cc"
CC_x86_64_unknown_linux_gnu=$CARGO_TARGET_DIR/cc
CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER=$CARGO_TARGET_DIR/cc
export CARGO_TARGET_DIR CC_x86_64_unknown_linux_gnu CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER
