#!/bin/sh
# Applies the manifests in deploy/kubernetes to a real control plane: etcd, Kubernetes' API server, its controllers and its
# scheduler, on loopback. The nodes are entries without a machine, so pods are placed, and do not run.
#
#   scripts/cluster.sh [PROGRAM]     PROGRAM: cipherbench, which makes the keys, by default target/release/cipherbench
#
# The programs are made from their Go modules (Go 1.26; a quarter of an hour of two cores, once) into $TOOLS, by default
# ~/.cache/cipherbench-tools.
set -eu
cd "$(dirname "$0")/.."
. scripts/versions.sh

tools=${TOOLS:-$HOME/.cache/cipherbench-tools}/kubernetes-$kubernetes_server-etcd-$etcd_server
program=$(realpath "${1:-target/release/cipherbench}")
PATH=$PATH:/usr/local/go/bin
[ -x "$program" ] || {
    echo "cluster: $program is not there: build it first, or name another" >&2
    exit 1
}
if [ ! -x "$tools/kubectl" ]; then
    command -v go >/dev/null || {
        echo "cluster: Go is not installed: https://go.dev/doc/install, 1.26 or later" >&2
        exit 1
    }
    build=$(mktemp -d)
    trap 'rm -rf "$build"' EXIT
    trap 'exit 1' HUP INT TERM
    # Its go.mod has the modules of its own repository replaced by folders, which only that repository has.
    module=$(cd "$build" && go mod download -json "k8s.io/kubernetes@v$kubernetes_server" |
        sed -n 's/.*"GoMod": "\(.*\)".*/\1/p')
    [ -r "$module" ] || {
        echo "cluster: Go cannot load k8s.io/kubernetes v$kubernetes_server" >&2
        exit 1
    }
    {
        echo "module cluster"
        grep '^go ' "$module"
        echo "require k8s.io/kubernetes v$kubernetes_server"
        echo "require go.etcd.io/etcd/server/v3 v$etcd_server"
        sed -n "s#^[[:space:]]*\(k8s.io/[a-z-]*\) => ./staging.*#replace \1 => \1 v0.${kubernetes_server#1.}#p" "$module"
    } > "$build/go.mod"
    mkdir -p "$tools"
    (
        cd "$build"
        go build -mod=mod -o "$tools/etcd" go.etcd.io/etcd/server/v3
        # The repository's own build sets the version; without it kubectl and the API server cannot compare theirs.
        version="-X k8s.io/component-base/version.gitVersion=v$kubernetes_server"
        for program in kube-apiserver kube-controller-manager kube-scheduler kubectl; do
            echo "cluster: making $program" >&2
            go build -mod=mod -ldflags "$version" -o "$build/$program" "k8s.io/kubernetes/cmd/$program"
            mv "$build/$program" "$tools/$program"
        done
    )
fi
scripts/cluster.py "$tools" "$program"
