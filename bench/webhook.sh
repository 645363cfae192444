#!/usr/bin/env bash
# How long gpumem-webhook takes to answer at a steady rate: bench/webhook.sh [PROGRAM [SECONDS [TLS]]]. 50 connections
# that each wait 50 to 150 ms between an answer and the next request ask about 500 times a second for the pod of
# examples/kubernetes (ResNet-50 at batch 32, its summary known already). Prints wrk's latencies and the CPU time
# that the webhook took. Run it on a machine that does nothing else; wrk shares its cores. Needs wrk (Debian: wrk), for
# TLS also openssl.
set -euo pipefail
cd "$(dirname "$0")/.."
program=${1:-build/all/src/webhook/gpumem-webhook}
seconds=${2:-30}
folder=$(mktemp -d)
server=
finish() {
  if [ -n "$server" ]; then
    kill "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
  fi
  rm -r "$folder"
}
trap finish EXIT

options=(--host 127.0.0.1 --port 0 --summaries models/summaries --threads 64)
if [ "${3:-}" = TLS ]; then
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=127.0.0.1 \
    -keyout "$folder/tls.key" -out "$folder/tls.crt" 2>/dev/null
  options+=(--tls-cert "$folder/tls.crt" --tls-key "$folder/tls.key")
fi
"$program" "${options[@]}" >"$folder/out" &
server=$!
for _ in $(seq 100); do
  grep -q listening "$folder/out" && break
  sleep 0.05
done
url=$(sed -n 's/.*listening on //p' "$folder/out")

cat >"$folder/review.lua" <<'LUA'
local file = io.open("examples/kubernetes/review.json")
wrk.method = "POST"
wrk.path = "/mutate"
wrk.headers["Content-Type"] = "application/json"
wrk.body = file:read("*a")
function delay() return math.random(50, 150) end
function done(summary, latency, requests)
  io.write(string.format("%.0f requests a second, p50 %.2f ms, p99 %.2f ms, longest %.2f ms, errors %d\n",
    summary.requests / summary.duration * 1e6, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3,
    latency.max / 1e3, summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.status +
    summary.errors.timeout))
end
LUA
wrk -t 1 -c 50 -d 2 -s "$folder/review.lua" "$url" >/dev/null  # so that the summary is known
processor_ms() { awk -v hz="$(getconf CLK_TCK)" '{print ($14 + $15) * 1000 / hz}' "/proc/$server/stat"; }
before=$(processor_ms)
wrk -t 1 -c 50 -d "$seconds" -s "$folder/review.lua" "$url" | tee "$folder/wrk" | tail -n 1
requests=$(sed -n 's/^ *\([0-9]*\) requests in .*/\1/p' "$folder/wrk")
awk -v after="$(processor_ms)" -v before="$before" -v requests="$requests" \
  'BEGIN {printf "the webhook took %.2f ms of CPU time a request\n", (after - before) / requests}'
