import { mkdirSync, writeFileSync } from "node:fs";
import { networkInterfaces } from "node:os";
import { join } from "node:path";

/** Configures the CNI plugins in a directory: a point-to-point link for each pod, with addresses of a network that no other node of this machine has. */
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

/** The machine's first IPv4 address beyond loopback, which a Node needs; undefined where there is none. */
export function machineAddress(): string | undefined {
  const addresses = Object.values(networkInterfaces()).flatMap((each) => each ?? []);
  return addresses.find(
    ({ family, internal, address }) => family === "IPv4" && !internal && !isOfPods(address),
  )?.address;
}

// From a range for documentation and tests that reaches nowhere: https://www.rfc-editor.org/rfc/rfc2544
function freeSubnet(): string {
  const used = new Set(
    Object.values(networkInterfaces())
      .flatMap((each) => each ?? [])
      .map(({ address }) => address),
  );
  for (;;) {
    const third = Math.floor(Math.random() * 256);
    if (!used.has(`198.18.${third}.1`)) return `198.18.${third}.0/24`;
  }
}

function isOfPods(address: string): boolean {
  return address.startsWith("198.18.");
}
