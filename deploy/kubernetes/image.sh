#!/bin/sh
# Sets the image of all pods, which `kubectl apply --kustomize` needs: no image of the project is published. Into `image`
# beside this file; again for an upgrade.
#
#   deploy/kubernetes/image.sh IMAGE     IMAGE: registry.example.com/cipherbench@sha256:… with the digest that was pushed
set -eu
image=${1:-}
refuse() {
    echo "image.sh: $1" >&2
    echo "help: \`docker buildx imagetools inspect --format '{{.Manifest.Digest}}' NAME:TAG\` prints the digest" >&2
    exit 1
}
name=${image%@*}
digest=${image##*@}
case $image in
    "") refuse "name the image, as NAME@sha256:DIGEST" ;;
    *@*) ;;
    *) refuse "\`$image\` has no digest: a tag may be another image tomorrow" ;;
esac
case $name in
    "" | *[!A-Za-z0-9./:_-]*) refuse "\`$name\` is no name of an image" ;;
esac
hex=${digest#sha256:}
case $hex in
    "$digest" | *[!0-9a-f]*) refuse "\`$digest\` is no digest: sha256: and 64 hexadecimal digits" ;;
esac
[ ${#hex} -eq 64 ] || refuse "\`$digest\` has ${#hex} hexadecimal digits, not 64"
case $hex in
    *[!0]*) ;;
    *) refuse "a digest of zeros stands for none: write that of your image" ;;
esac
cd "$(dirname "$0")"
mkdir -p image
cat > image/kustomization.new <<YAML
apiVersion: kustomize.config.k8s.io/v1alpha1
kind: Component
images:
  - name: cipherbench
    newName: "$name"
    digest: "$digest"
YAML
mv image/kustomization.new image/kustomization.yaml
