import { mkdirSync, writeFileSync } from "node:fs";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { worker, workers } from "../worker.ts";

/**
 * Writes the CNI configuration to a directory: a point-to-point link per pod, with addresses from a network that no
 * other node on this machine uses.
 */
export function writeNetwork(directory: string): void {
  mkdirSync(directory, { recursive: true });
  const ipam = { type: "host-local", subnet: freeSubnet(), dataDir: join(directory, "addresses") };
  const network = {
    cniVersion: "1.0.0",
    name: "e2e",
    plugins: [{ type: "ptp", ipMasq: false, ipam: { ...ipam, routes: [{ dst: "0.0.0.0/0" }] } }],
  };
  writeFileSync(join(directory, "10-e2e.conflist"), JSON.stringify(network));
}

/**
 * Returns the machine's first IPv4 address that is neither loopback nor in the range of pods, for use as the node IP.
 * Undefined if there is none.
 */
export function machineAddress(): string | undefined {
  const addresses = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  return addresses.find(
    ({ family, internal, address }) => family === "IPv4" && !internal && !isOfPods(address),
  )?.address;
}

// Returns an unused /24 network. 198.18.0.0/15 is reserved for benchmarks: https://www.rfc-editor.org/rfc/rfc2544
function freeSubnet(): string {
  const used = new Set(
    Object.values(networkInterfaces())
      .flatMap((each) => each ?? [])
      .map(({ address }) => address),
  );
  // A network is visible only once its first pod runs, so test files that run at the same time use separate ranges.
  const size = 256 / workers;
  for (;;) {
    const third = worker * size + Math.floor(Math.random() * size);
    if (!used.has(`198.18.${third}.1`)) return `198.18.${third}.0/24`;
  }
}

function isOfPods(address: string): boolean {
  return address.startsWith("198.18.");
}
