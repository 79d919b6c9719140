# Targets of Cipherbench. `make help` lists them.

# The destination of `make install`, and further arguments of `make run`.
PREFIX ?= /usr/local
ARGS ?=
# What `make fuzz` runs, and for how long.
TARGET ?= list
SECONDS ?= 60
# The game of `make chaos`: seed, agents, jobs, events, of which every eleventh kills the server.
CHAOS ?= 7 20 500 220

# rustup's own installer puts cargo here without changing the PATH of open shells.
export PATH := $(PATH):$(HOME)/.cargo/bin

.DEFAULT_GOAL := help
.PHONY: help setup run test build attack bench-capture bench-device bench-direct bench-fleet bench-frames bench-gost bench-handshakes bench-hosts bench-http bench-ike bench-impair bench-lane bench-memory bench-peers bench-report bench-search campaigns chaos cluster compare-power explore truth emulate soak fuzz fuzz-all lint fmt doc docs tutorials pictures dashboards deny hardening sbom reproducible dist install kernel kubernetes python token peers clean bisect-lab bisect-power dist-test replicas

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Install what is missing to build and run (Debian 12, Ubuntu 24.04)
	@scripts/setup.sh run

run: setup ## Set up, build, and run the quick campaign (ARGS="campaigns/x.yaml" for another)
	@scripts/build.sh
	target/quick/cipherbench run $(ARGS)

test: ## Set up, then check format, lints, tests and docs: what CI runs
	@scripts/setup.sh test
	@scripts/peers.sh test
	@scripts/test.sh

build: ## Build the program: target/release/cipherbench
	cargo build --release --locked --package cipherbench

attack: ## Attack what docs/security.md promises to withstand, and print results beside bounds (ARGS="journal" for some)
	@scripts/attack.sh $(ARGS)

bench-device: build ## Our speed trial on OpenSSL, compared with a tight loop in C and `openssl speed`
	bench/device.py $(ARGS)

bench-capture: build ## What a capture costs TCP, with it and without in turn (root)
	bench/capture.py $(ARGS)

bench-direct: build ## What our checks cost TCP over `direct`, beside iperf3 by hand (root)
	bench/direct.py $(ARGS)

bench-fleet: build ## What a fleet costs and carries: an idle agent, `status` of 10 000 jobs, leases, runs and records per second
	cargo run --release --locked --package cipherbench-fleet --example scale -- target/release/cipherbench

bench-frames: build ## Frames per second of our generator and of iperf3 over one veth pair (root)
	bench/frames.py $(ARGS)

bench-gost: ## GOST ciphers on one core: modes, kernels and sizes (ARGS="magma ctr" for some rows)
	cargo run --release --locked --package cipherbench-gost --example speed -- $(ARGS)

bench-handshakes: ## Handshakes per second between two of our encryptors, both on one core
	cargo run --release --locked --package cipherbench-control --example handshakes

bench-hosts: build ## A lab of two hosts beside that of namespaces: TCP, time until it is up, clocks (root)
	bench/hosts.py $(ARGS)

bench-http: build ## Requests and TLS connections per second of our HTTP client, wrk and h2load (root)
	bench/http.py $(ARGS)

bench-ike: ## IKE set-ups per second and core of our initiators and responder, and memory per peer (ARGS="--peers 2000 --idle 100000")
	cargo run --release --locked --package cipherbench-ike-peers --example bench -- $(ARGS)

bench-lane: ## Packets per second that one core of the encryptor seals and opens, beside its engine alone
	cargo run --release --locked --package cipherbench-encryptor --example lane

bench-impair: ## Frames per second over an impaired path, in memory and between virtual links, on one core (root)
	cargo run --release --locked --package cipherbench-traffic --example impair

bench-memory: ## Frames per second generated and checked in memory, on one core
	cargo run --release --locked --package cipherbench-traffic --example memory

bench-peers: build ## Our encryptor and other tunnels on the same two cores (root; ARGS="ours wireguard-go")
	bench/peers.py $(ARGS)

bench-report: build ## Time and memory of `report` and `compare` on runs of 10 000 trials
	bench/report.py $(ARGS)

bench-search: ## Trials and time of each search on simulated devices
	cargo run --release --locked --package cipherbench-search --example compare

bisect-lab: ## Bisect a delay in our encryptor at one of 32 commits, in a real lab (root; CIPHERBENCH_DELAY=2 per cent, CIPHERBENCH_PAIRS=800; up to an hour)
	cargo test --locked --package cipherbench --test cli -- --ignored a_delay_of_2_percent

bisect-power: ## How often a bisection finds the changed one of simulated versions, accuses another, and how long it takes (ARGS=1000: bisections)
	cargo run --release --locked --package cipherbench-bisect --example power -- $(ARGS)

campaigns: build ## Run every shipped campaign, shortened, and list the cells without a figure (root; ARGS="quick ipsec")
	bench/campaigns.py $(ARGS)

chaos: build ## A fleet of 20 agents and 500 jobs, about 100 kills of agents, 20 of the server and 100 cuts or delays of networks, by a seed (CHAOS="7 20 500 220")
	scripts/tools.sh nats >/dev/null
	CHAOS="$(CHAOS)" cargo test --release --locked --package cipherbench-fleet --test chaos -- killed_agents
	bench/chaos.py $(ARGS)

compare-power: ## How often `compare` finds a drop between simulated runs, and one that is none (ARGS=100: comparisons)
	cargo run --release --locked --package cipherbench-compare --example power -- $(ARGS)

explore: ## Every order of events of the rollover and of IKE with several faults, exhaustively (some minutes)
	cargo test --release --locked --package cipherbench-keying --package cipherbench-ike --lib -- --ignored --nocapture explored

replicas: ## Find replicas of known faults of offloads by the doctor, on real interfaces (root; a quarter of an hour)
	cargo test --workspace --locked --test replicas -- --ignored

truth: ## Bias, coverage, false verdicts, lies found and time on simulated devices of known truth (ARGS=20: seeds)
	cargo run --release --locked --package cipherbench-trial --example truth -- $(ARGS)

emulate: ## Run the tests of AVX-512 and GFNI on an emulated processor (Bochs 2.8 or later; ARGS="magma" for some)
	@scripts/emulate.sh $(ARGS)

soak: build ## An hour of rekeys, faults on both links and kills: every frame has one end (root; SECONDS=600 for less)
	bench/soak.py $(if $(filter-out file,$(origin SECONDS)),--seconds $(SECONDS)) $(ARGS)

fuzz: ## Run one fuzz target (TARGET=esp_open SECONDS=60; without TARGET, list them)
	@scripts/fuzz.sh $(TARGET) $(SECONDS)

fuzz-all: ## Run every fuzz target for SECONDS=60, or in rounds of that for EXECUTIONS in total (JOBS: in parallel; ARGS=--keep: minimise the corpora)
	@fuzz/all.py --seconds $(SECONDS) $(if $(EXECUTIONS),--executions $(EXECUTIONS)) $(if $(JOBS),--jobs $(JOBS)) $(ARGS)

lint: ## Check format and lints only
	@scripts/test.sh lint

fmt: ## Format all code
	cargo fmt --all

doc: ## Build the API documentation: target/doc
	RUSTDOCFLAGS="--deny warnings" cargo doc --workspace --no-deps --locked

docs: ## Build the documents as a site, and check its links: target/docs/index.html
	@scripts/site.py "$$(scripts/tools.sh mdbook)/mdbook"

tutorials: build ## Run the tutorials in docs/start as they are printed (root; ARGS="docs/start/gateway-pair.md" for some)
	@scripts/tutorials.py $(ARGS)

pictures: build ## Remake the pictures of README.md and docs by runs and a headless browser (chromium; a quarter of an hour; ARGS="frames" for some)
	@scripts/pictures.py $(ARGS)

dashboards: build ## Read the dashboards in deploy/grafana by Grafana's own schema, and evaluate their queries by a real Prometheus (Go, apt)
	@scripts/dashboards.sh $(ARGS)

deny: ## Check licences, advisories and sources of dependencies
	@scripts/tools.sh deny >/dev/null
	@scripts/deny.sh

hardening: ## Look for leaks through time and for wrong accesses to memory (valgrind; ARGS=timing for one part)
	@scripts/hardening.sh $(ARGS)

sbom: ## List every dependency, its version, licence and hash: target/sbom (CycloneDX 1.5)
	@scripts/sbom.sh

reproducible: ## Build the release twice, in different folders, and compare the programs (15 minutes; ARGS="--profile dev" for a quick look)
	@scripts/reproducible.sh $(ARGS)

dist: sbom ## Pack a release for glibc 2.31 and newer: target/dist with archive, .deb, .rpm and wheel, list of dependencies and checksums (ARGS=deb for some packages)
	@scripts/portable.sh
	@scripts/packages.sh $(ARGS)
	@scripts/dist.sh

dist-test: ## Install, use, upgrade and purge the .deb of target/dist in fresh roots (root; ARGS="bookworm" for one)
	@scripts/dist-test.sh $(ARGS)

install: build ## Install the program to PREFIX/bin (default /usr/local), with manual pages, completions, and units and user for systemd
	@scripts/install.sh target/release/cipherbench "$(DESTDIR)" "$(PREFIX)"

kernel: ## Run the tests of the kernel's own tunnels on a distribution's kernel, emulated (apt; a few minutes)
	@scripts/kernel.sh

kubernetes: ## Check the manifests in deploy/kubernetes by Kubernetes' schemas
	@scripts/kubernetes.sh

cluster: build ## Apply the manifests to Kubernetes' own API server, controllers and scheduler (Go; a quarter of an hour once)
	@scripts/cluster.sh

python: ## Test the Python package of results, check its types and style, build its wheel (PyPI; ARGS="-k soak" for some tests)
	@scripts/python.sh $(ARGS)

token: ## Test PKCS#11 v3.2, ML-DSA and ML-KEM on a software token (needs libclang and pkcs11-tool; 10 minutes)
	@scripts/token.sh $(ARGS)

peers: ## Install the tunnels that campaigns compare with ours (apt, cargo and, if installed, go)
	@scripts/peers.sh

clean: ## Remove what was built; runs and their reports stay
	cargo clean
