#!/bin/sh
# Checks the manifests in deploy/kubernetes by Kubernetes' own schemas, the labs in them by `cipherbench check`, that no
# image but the user's own is applied, and the configuration of the servers by a fleet of them (scripts/servers.py).
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
import os, shutil, subprocess, sys, tempfile
import kubernetes_validate, yaml

version, program = sys.argv[1:]
folder = "deploy/kubernetes"
kustomization = yaml.safe_load(open(f"{folder}/kustomization.yaml"))
listed = kustomization["resources"]
files = sorted(name for name in os.listdir(folder) if name.endswith(".yaml") and name != "kustomization.yaml")
if sorted(listed) != files:
    sys.exit(f"{folder}/kustomization.yaml lists {sorted(listed)}, and there are {files}")
# The image comes from image.sh alone: without it kustomize refuses, where a placeholder would be applied.
if "images" in kustomization or kustomization.get("components") != ["image"]:
    sys.exit(f"{folder}/kustomization.yaml: the image is to be that of image.sh: `components: [image]`, and no `images`")


def containers(manifest):
    """Those of a workload's pods."""
    pod = manifest.get("spec", {}).get("template", {}).get("spec", {})
    return pod.get("initContainers", []) + pod.get("containers", [])


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
        for container in containers(manifest):
            if container["image"] != "cipherbench":
                sys.exit(f"{folder}/{name}: {key}: `{container['image']}` is no image that image.sh sets")
        for file, text in manifest.get("data", {}).items():
            if file.endswith(".yaml") and os.path.exists(program):
                with tempfile.NamedTemporaryFile("w", suffix=".yaml") as lab:
                    lab.write(text)
                    lab.flush()
                    subprocess.run([program, "check", lab.name], check=True)
print(f"{len(seen)} manifests are valid in Kubernetes {version}")

REFUSED = ["", "x/cipherbench", "x/cipherbench:1", "x/cipherbench@sha256:12", "@sha256:" + "1" * 64,
           "x/cipherbench@sha256:" + "A" * 64, "x/cipherbench@sha256:" + "0" * 64, "x y@sha256:" + "1" * 64]
OWN = "registry.example.com:5000/x/cipherbench@sha256:" + "1" * 64
with tempfile.TemporaryDirectory() as made:
    made = f"{made}/kubernetes"
    shutil.copytree(folder, made, ignore=shutil.ignore_patterns("keys", "keys.new", "image"))
    os.mkdir(f"{made}/keys")
    for generator in kustomization["secretGenerator"]:
        for file in generator["files"]:
            open(f"{made}/{file}", "w").close()

    def set_image(image):
        return subprocess.run([f"{made}/image.sh", image], stderr=subprocess.PIPE, text=True)

    def rendered():
        return subprocess.run(["kubectl", "kustomize", made], capture_output=True, text=True)

    has_kubectl = shutil.which("kubectl") is not None
    for image in REFUSED:
        if set_image(image).returncode == 0:
            sys.exit(f"{folder}/image.sh accepts `{image}`")
    if has_kubectl and rendered().returncode == 0:
        sys.exit(f"{folder} can be applied without an image")
    done = set_image(OWN)
    if done.returncode != 0:
        sys.exit(f"{folder}/image.sh refuses `{OWN}`: {done.stderr}")
    [entry] = yaml.safe_load(open(f"{made}/image/kustomization.yaml"))["images"]
    if (entry["name"], f"{entry['newName']}@{entry['digest']}") != ("cipherbench", OWN):
        sys.exit(f"{folder}/image.sh writes {entry} of `{OWN}`")
    if has_kubectl:
        done = rendered()
        if done.returncode != 0:
            sys.exit(f"{folder} cannot be rendered: {done.stderr}")
        images = {box["image"] for one in yaml.safe_load_all(done.stdout) for box in containers(one)}
        if images != {OWN}:
            sys.exit(f"{folder} has the images {images}, not {OWN}")
        print("rendered by kubectl, they have the image that image.sh sets, and without it they are refused")
    else:
        print("SKIPPED: kubectl is not installed, and rendered nothing")
END
if [ -x "$program" ]; then
    "$python" scripts/servers.py "$program"
fi
