#!/bin/sh
# Checks the manifests in deploy/kubernetes by Kubernetes' own schemas, and the labs in them by `cipherbench check`.
#
#   scripts/kubernetes.sh [PROGRAM]     PROGRAM: cipherbench, by default target/release/cipherbench, if it is built
#
# Its checker is a package of Python, installed into $TOOLS, by default ~/.cache/cipherbench-tools.
set -eu
cd "$(dirname "$0")/.."
. scripts/versions.sh

tools=${TOOLS:-$HOME/.cache/cipherbench-tools}
program=${1:-target/release/cipherbench}
python=$tools/kubernetes/bin/python
if [ ! -x "$tools/kubernetes/bin/kubernetes-validate" ]; then
    requirements=$(mktemp)
    printf '%s' "$kubernetes_validate" > "$requirements"
    python3 -m venv "$tools/kubernetes" >&2
    "$python" -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps --only-binary :all: \
        --requirement "$requirements" >&2
    rm "$requirements"
fi
"$python" - "$kubernetes_version" "$program" <<'END'
import os, subprocess, sys, tempfile
import kubernetes_validate, yaml

version, program = sys.argv[1:]
folder = "deploy/kubernetes"
listed = yaml.safe_load(open(f"{folder}/kustomization.yaml"))["resources"]
files = sorted(name for name in os.listdir(folder) if name != "kustomization.yaml")
if sorted(listed) != files:
    sys.exit(f"{folder}/kustomization.yaml lists {sorted(listed)}, and there are {files}")
seen = set()
for name in files:
    for manifest in yaml.safe_load_all(open(f"{folder}/{name}")):
        try:
            kubernetes_validate.validate(manifest, version, strict=True)
        except kubernetes_validate.ValidationError as error:
            where = ".".join(str(key) for key in error.path)
            sys.exit(f"{folder}/{name}: {manifest['kind']}: {where}: {error.message}")
        key = (manifest["kind"], manifest["metadata"]["name"])
        if key in seen:
            sys.exit(f"{folder}/{name}: {key} is there twice")
        seen.add(key)
        for file, text in manifest.get("data", {}).items():
            if file.endswith(".yaml") and os.path.exists(program):
                with tempfile.NamedTemporaryFile("w", suffix=".yaml") as lab:
                    lab.write(text)
                    lab.flush()
                    subprocess.run([program, "check", lab.name], check=True)
print(f"{len(seen)} manifests are valid in Kubernetes {version}")
END
