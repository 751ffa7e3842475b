# Varve's commands. "make" alone lists them.

VERSION     := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
STATICCHECK := v0.8.2
PLATFORMS   := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64

# Real servers are started by the tests below cmd/e2e: one package at a time, and
# without the race detector, which would make Go the slowest of the servers.
E2E  = $(shell go list ./cmd/e2e/...)
REST = $(filter-out $(E2E),$(shell go list ./...))
# The race detector wants a C compiler.
RACE = $(shell command -v gcc >/dev/null 2>&1 || command -v clang >/dev/null 2>&1 && echo -race)
# Rooms on the path of a record, whose benchmarks "make bench" runs.
HOT     ?= ./broker/record ./broker/producer ./broker/wire ./broker/commitlog ./broker/partition ./broker/api
FUZZTIME ?= 5s
BENCH   ?=

.DEFAULT_GOAL := help
.PHONY: help build setup check cross test test-race test-e2e test-versions fuzz oracle bench dev-hdfs clean

help:
	@echo 'make build          bin/varve, stamped with its version ($(VERSION))'
	@echo 'make test           what is missing is installed or named; then every check and every test'
	@echo 'make test-versions  the tests of real servers against all versions, old ones too (slow)'
	@echo 'make fuzz           each fuzz target for FUZZTIME=$(FUZZTIME)'
	@echo 'make oracle         Varve and a real Kafka answer the same requests; writes docs/compatibility.md'
	@echo 'make bench          Varve beside Kafka (BENCH=flags of cmd/bench/peer), and the benchmarks of hot rooms'
	@echo 'make dev-hdfs       a local HDFS until Ctrl-C; prints its URL'
	@echo 'make clean          removes bin/ (fetched jars stay in the cache)'

build:
	@echo '== build: bin/varve $(VERSION)'
	@go build -trimpath -ldflags '-X varve/cmd/standalone.version=$(VERSION)' -o bin/varve ./cmd/varve

# setup installs what the tests need where it may (root on Debian), and otherwise
# says what is missing and what is skipped for it.
setup:
	@echo '== setup: what the tests need'
	@mkdir -p bin; missing=; \
	for pair in java:default-jdk-headless mvn:maven kcat:kcat gcc:gcc,libc6-dev; do \
		command -v $${pair%%:*} >/dev/null 2>&1 || missing="$$missing $$(echo $${pair#*:} | tr , ' ')"; \
	done; \
	if [ -z "$$missing" ]; then echo "java, mvn, kcat and gcc are here"; \
	elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then \
		echo "installing from Debian:$$missing"; \
		export DEBIAN_FRONTEND=noninteractive; \
		{ apt-get -q update && apt-get -q install -y --no-install-recommends $$missing; } >bin/setup.log 2>&1 \
			|| { tail -20 bin/setup.log; rm -f bin/setup.log; echo "apt-get failed:$$missing"; exit 1; }; \
		rm -f bin/setup.log; \
	else \
		echo "MISSING (Debian's names):$$missing"; \
		echo "Install them, or become root on Debian and run this again."; \
		echo "Without java and mvn the tests with real servers are SKIPPED; without gcc there is no race detector."; \
	fi
	@if bin/tools/staticcheck -version 2>/dev/null | grep -qF '($(STATICCHECK:v%=%))'; then :; else \
		echo "installing staticcheck $(STATICCHECK) into bin/tools"; \
		GOBIN='$(CURDIR)/bin/tools' go install honnef.co/go/tools/cmd/staticcheck@$(STATICCHECK); fi

check:
	@echo '== gofmt'
	@bad=$$(gofmt -l .); [ -z "$$bad" ] || { echo "gofmt would change:"; echo "$$bad"; exit 1; }
	@echo '== go vet'
	@go vet ./...
	@echo '== staticcheck $(STATICCHECK)'
	@bin/tools/staticcheck ./...

cross:
	@for p in $(PLATFORMS); do \
		echo "== go build ./... for $$p"; \
		CGO_ENABLED=0 GOOS=$${p%/*} GOARCH=$${p#*/} go build ./... || exit 1; \
	done

test: setup check cross
	@skips=$$(mktemp); trap 'rm -f "$$skips"' EXIT; export VARVE_SKIPS="$$skips"; \
	$(MAKE) --no-print-directory test-race && $(MAKE) --no-print-directory test-e2e || exit 1; \
	if [ -s "$$skips" ]; then echo; echo '!! SKIPPED, for want of programs:'; sort -u "$$skips"; fi

test-race:
	@echo '== go test $(RACE): every package but the real servers'
	@go test $(RACE) -timeout 15m $(TESTFLAGS) $(REST)

test-e2e:
	@echo '== go test: with real servers'
	@go test -p 1 -timeout 20m $(TESTFLAGS) $(E2E)

test-versions: setup
	@echo '== go test: with every version of the real servers'
	@VARVE_VERSIONS=all go test -p 1 -count=1 -timeout 60m ./cmd/e2e/... ./tier/...

fuzz:
	@grep -rlE '^func Fuzz' --include='*_test.go' . | while read -r file; do \
		for target in $$(sed -nE 's/^func (Fuzz[A-Za-z0-9_]*)\(.*/\1/p' "$$file"); do \
			echo "== $$target in $$(dirname "$$file"), $(FUZZTIME)"; \
			go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "$$(dirname "$$file")" || exit 1; \
		done; \
	done

oracle: setup
	@echo '== oracle: the same requests to Kafka and to Varve'
	@VARVE_WRITE_DOCS=1 go test -count=1 -timeout 20m -v ./cmd/e2e/oracle

bench: setup build
	@echo '== Varve beside Kafka'
	@go run ./cmd/bench/peer -varve bin/varve $(BENCH)
	@echo '== benchmarks of hot rooms'
	@go test -run '^$$' -bench . -benchmem $(HOT)

dev-hdfs:
	@go build -o bin/devservers ./cmd/e2e/devservers
	@bin/devservers hdfs

clean:
	@echo '== clean: bin/'
	@rm -rf bin
