# What a person types; the work is in tools/ and in cargo. Every target may be run again at any time:
# what is there is not made twice.

EDGE_SOURCES := $(shell find edge/src shared/src -name '*.rs') edge/Cargo.toml shared/Cargo.toml \
	Cargo.toml Cargo.lock rust-toolchain.toml package-lock.json tools/bindgen/main.rs tools/edge.sh tools/setup.sh
CLIENT_SOURCES := $(wildcard clients/typescript/src/*.ts) clients/typescript/tsconfig.json package-lock.json tools/client.sh
PAGES_SOURCES := $(wildcard pages/*/*.*) README.md $(shell find console clients/typescript/src -type f) tools/pages.mjs tools/console.mjs package-lock.json
# Private items are documented too, for who works on them, so links to them resolve.
RUSTDOCFLAGS := -D warnings -A rustdoc::private_intra_doc_links
export RUSTDOCFLAGS

# Where rustup puts cargo, for a shell that has not heard of it yet. With MARIADB=11.8, the tests find that MariaDB first.
export PATH := $(if $(MARIADB),$(CURDIR)/.tools/mariadb-$(MARIADB)/bin:)$(PATH):$(HOME)/.cargo/bin

.DEFAULT_GOAL := help
.PHONY: help setup build run quick edge client pages test check fuzz mutants bench bench-thumbnails bench-micro bench-check cluster soak bench-console deb test-packages edge-program audit clean

help: ## Show this
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 20

setup: ## Install what is missing on this machine (make run does it too)
	@tools/setup.sh

build: edge pages ## Build the binary `selkie` (target/release/selkie) and the worker
	@cargo build --locked --release -p selkie-origin

deb: build ## Build the Debian package (target/packages/)
	@tools/setup.sh package
	@tools/deb.sh

edge-program: edge ## Compile the edge, with workerd, into one program (target/packages/selkie-edge)
	@mkdir -p target/packages
	@node_modules/.bin/workerd compile edge/workerd.capnp > target/packages/selkie-edge
	@chmod +x target/packages/selkie-edge

test-packages: build edge-program ## Test the Debian package in a clean Debian with systemd, and the images with podman (as root, ten minutes)
	@tools/setup.sh test-packages
	@tools/test-packages.sh
	@tools/test-containers.sh

# Builds the worker beside the origin: each has parts that keep one core only busy.
run: setup pages client ## Start everything here: MariaDB, origin, edge, demo database. Ctrl-C ends it
	@CARGO_TERM_PROGRESS_WHEN=never $(MAKE) --no-print-directory edge & $(MAKE) --no-print-directory quick && wait $$!
	@exec target/quick/selkie dev

quick:
	@cargo build --locked --profile quick -p selkie-origin

edge: edge/build/index.js ## Build the worker (edge/build/) if a source of it changed

edge/build/index.js: $(EDGE_SOURCES)
	@tools/setup.sh build
	@tools/edge.sh

client: clients/typescript/dist/index.js ## Build the TypeScript client (clients/typescript/dist/) if a source of it changed

clients/typescript/dist/index.js: $(CLIENT_SOURCES)
	@tools/setup.sh build
	@tools/client.sh

pages: pages/build/docs ## Make the files of the pages that the origin serves (pages/build/)

pages/build/docs: $(PAGES_SOURCES)
	@tools/setup.sh build
	@node tools/pages.mjs

test: edge client pages ## Run all tests, end to end ones included (MARIADB=11.8 for another MariaDB than this machine's)
	@tools/setup.sh test
	@tools/test.sh

check: ## Format, lints (native, wasm32, scripts), docs, types of the console, a dry deployment
	@tools/setup.sh build
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets -- -D warnings
	cargo clippy --locked -p selkie-edge --target wasm32-unknown-unknown -- -D warnings
	cargo doc --locked --workspace --no-deps --document-private-items --quiet
	node_modules/.bin/biome check --error-on-warnings
	node_modules/.bin/tsc -p console
	@$(MAKE) --no-print-directory edge
	WRANGLER_SEND_METRICS=false WRANGLER_LOG_PATH=.wrangler/logs node_modules/.bin/wrangler deploy --dry-run --outdir target/deploy

cluster: setup build ## Kill, halt and cut off parts of a cluster under load: nothing acknowledged may be lost (ARGS=--help for options)
	@tools/setup.sh test
	cargo run --locked --release -p tests --bin endurance -- cluster $(ARGS)

soak: setup build ## Load one installation for an hour with faults: memory, descriptors and connections may not grow (SOAK_SECONDS=… for another time)
	@tools/setup.sh test
	cargo run --locked --release -p tests --bin endurance -- soak --seconds $(or $(SOAK_SECONDS),3600) $(ARGS)

audit: ## Check the dependencies: licenses, sources, known vulnerabilities (needs the network: run it on a schedule)
	@tools/setup.sh audit
	.tools/bin/cargo-deny --locked --workspace check

fuzz: ## Fuzz requests for a minute (FUZZ_SECONDS=… for another time)
	@tools/setup.sh fuzz
	@tools/fuzz.sh

mutants: pages ## Change the pure code, function by function: the unit tests must notice 90 % (FILES="shared/src/range.rs …", SHARD=0/16; days for all)
	@tools/setup.sh mutants
	@tools/mutants.sh $(FILES)

bench: setup build ## Compare speed with the bare driver and a hand-written server, in ten minutes (ARGS=--help for options)
	cargo run --locked --release -p tests --bin bench -- $(ARGS)

bench-thumbnails: ## Compare thumbnails with npm's sharp (ARGS=… for its options)
	@tools/setup.sh build
	cargo run --locked --release -p tests --features thumbnails --bin bench-thumbnails -- $(ARGS)

bench-console: ## Time the console of a running service in Chromium (SELKIE_URL, SELKIE_KEY; ARGS="demo posts", or a table of yours)
	node console/test/measure.mjs $(or $(ARGS),demo posts)

bench-micro: ## Time the stages of a request without database or network (ARGS=… for divan's options)
	@tools/setup.sh compile
	cargo bench --locked -p selkie-origin -p selkie-shared --features selkie-origin/bench --bench reads --bench encoding --bench staging --bench thumbnails --bench keys --bench uploads -- $(ARGS)

bench-check: ## Fail if a stage of a request takes 10 % more instructions than it did (ACCEPT=1 renews the figures)
	@tools/setup.sh count
	cargo run --locked --release -p selkie-origin --features bench --bin instructions -- $(if $(ACCEPT),--accept)

clean: ## Remove what was built; the tools (.tools, node_modules) and the data (.selkie) stay
	cargo clean
	rm -rf edge/build clients/typescript/dist pages/build .wrangler
