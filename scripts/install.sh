#!/bin/sh
# Installs the program with its manual pages, completions, units and users: `make install`.
#
#   scripts/install.sh PROGRAM DESTDIR PREFIX
set -eu
cd "$(dirname "$0")/.."

program=$1
root=$2$3
work=$(mktemp -d "${TMPDIR:-/tmp}/cipherbench-install.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

install -D -m 755 "$program" "$root/bin/cipherbench"
"$program" generate man --output "$work/man" >/dev/null
install -d -m 755 "$root/share/man/man1" "$root/lib/systemd/system"
install -m 644 "$work"/man/*.1 "$root/share/man/man1/"
completion() {
    "$program" generate completions "$1" > "$work/$1"
    install -D -m 644 "$work/$1" "$root/$2"
}
completion bash share/bash-completion/completions/cipherbench
completion zsh share/zsh/site-functions/_cipherbench
completion fish share/fish/vendor_completions.d/cipherbench.fish
install -D -m 644 packaging/sysusers.conf "$root/lib/sysusers.d/cipherbench.conf"
install -D -m 644 packaging/tmpfiles.conf "$root/lib/tmpfiles.d/cipherbench.conf"
for unit in packaging/*.service; do
    sed "s|@PREFIX@|$3|" "$unit" > "$work/unit"
    install -m 644 "$work/unit" "$root/lib/systemd/system/${unit##*/}"
done
