#!/bin/sh
# Makes what `kubectl apply --kustomize` needs and no repository has: the fleet's users and their keys, an authority, and
# a certificate for each server. Into `keys` beside this file, once.
#
#   deploy/kubernetes/keys.sh [PROGRAM]     PROGRAM: cipherbench, by default the one in the PATH
set -eu
program=$(command -v "${1:-cipherbench}") || {
    echo "keys.sh: ${1:-cipherbench} is not there: name the program" >&2
    exit 1
}
program=$(realpath "$program")
cd "$(dirname "$0")"
if [ -e keys ]; then
    echo "keys.sh: $PWD/keys is there: remove it if all keys shall be made anew" >&2
    exit 1
fi
umask 077
rm -rf keys.new
"$program" fleet users keys.new
"$program" keys authority keys.new/authority
for server in nats-0 nats-1 nats-2; do
    "$program" keys certificate --authority keys.new/authority --out keys.new "$server.nats"
done
cp keys.new/authority/ca.pem keys.new/ca.pem
mv keys.new keys
echo "$PWD/keys has the keys: submitters need submitter.nk and ca.pem; keep the rest where only its owner reads it"
