#!/bin/sh
# Checks the dashboards in deploy/grafana: strictly by the types that Grafana generates from its own schemas
# (grafana-foundation-sdk, a Go module), and each query by a real Prometheus on real metrics.
#
#   scripts/dashboards.sh [PROGRAM]     PROGRAM: cipherbench, by default target/release/cipherbench
#
# It runs as root. Prometheus is that of the PATH, or Debian's package, which is only unpacked, into $TOOLS, by default
# ~/.cache/cipherbench-tools. Grafana itself is in no registry that the project uses, so nothing is drawn.
set -eu
cd "$(dirname "$0")/.."

program=$(realpath "${1:-target/release/cipherbench}")
tools=${TOOLS:-$HOME/.cache/cipherbench-tools}
PATH=$PATH:/usr/local/go/bin:/usr/sbin:/sbin
export PATH
fail() {
    echo "dashboards: $*" >&2
    exit 1
}
[ -x "$program" ] || fail "$program is missing: \`make build\`, or name another"
[ "$(id -u)" = 0 ] || fail "run this as root: it creates interfaces"
command -v go >/dev/null || fail "Go is not installed: https://go.dev/doc/install, 1.21 or later"

(cd scripts/dashboards && go build -mod=readonly -o "$tools/dashboards-schema" .)
"$tools/dashboards-schema" deploy/grafana/*.json

prometheus=$(dirname "$(command -v promtool || echo "$tools/prometheus/usr/bin/promtool")")
if [ ! -x "$prometheus/promtool" ]; then
    package=$(mktemp -d)
    trap 'rm -rf "$package"' EXIT
    (cd "$package" && apt-get -qq -o APT::Sandbox::User=root download prometheus) ||
        fail "prometheus cannot be fetched: install it, or run apt-get update first"
    mkdir -p "$tools"
    dpkg -x "$package"/prometheus_*.deb "$tools/prometheus"
fi
scripts/dashboards/queries.py "$prometheus" "$program"
