#!/bin/sh
# The compiler of the workspace's own crates in tests, which cargo calls with rustc's arguments: clippy's, so that the same compilation
# gives the lints. For libraries and the program it also checks the documentation. (`cargo doc` would read all dependencies again: two
# minutes.)
set -eu
clippy-driver "$@"
shift

kind=
name=
for word; do
    case $kind,$name,$word in
    *,*,--test | *,*,--print*) exit 0 ;;
    next,*,*) kind=$word ;;
    *,next,*) name=$word ;;
    esac
    case $word in
    --crate-type) kind=next ;;
    --crate-name) name=next ;;
    esac
done
case $kind,$name in
lib,*) private= ;;
bin,cipherbench) private=--document-private-items ;;
*) exit 0 ;;
esac

# Arguments that both accept, in their order.
next=drop
count=$#
while [ "$count" -gt 0 ]; do
    word=$1
    shift
    count=$((count - 1))
    case $next,$word in
    keep,*) set -- "$@" "$word" ;;
    *,--crate-name | *,--extern | *,--cfg | *,--check-cfg | *,-L)
        set -- "$@" "$word"
        next=keep
        continue
        ;;
    *,--edition=* | *,--*=rustdoc::* | *,*.rs) set -- "$@" "$word" ;;
    esac
    next=drop
done
# shellcheck disable=SC2086 # one word or none
exec rustdoc "$@" $private --deny warnings --out-dir "${CARGO_TARGET_DIR:-target}/doc"
