import { readFileSync } from "node:fs";
import { arch, cpus, networkInterfaces, release, totalmem } from "node:os";

/** Properties of a machine shown in its Node. */
export interface Machine {
  /** Number of online CPUs. */
  cpus: number;
  memoryBytes: number;
  /** Architecture as named by Kubernetes: "amd64". */
  architecture: string;
  kernelVersion: string;
  osImage: string;
  /** Address reachable from other machines, or 127.0.0.1 if there is none. */
  address: string;
}

/** A fixed machine, so that tests do not depend on the host. */
export const sampleMachine: Machine = {
  cpus: 4,
  memoryBytes: 8 * 1024 ** 3,
  architecture: "amd64",
  kernelVersion: "development",
  osImage: "development",
  address: "127.0.0.1",
};

// Go names of architectures that differ in Node.
const architectures: Readonly<Record<string, string>> = { x64: "amd64", ia32: "386" };

/** Returns the machine on which this process runs, as read by the agent's system reporter. */
export function thisMachine(): Machine {
  const external = Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .find(({ family, internal }) => family === "IPv4" && !internal);
  return {
    cpus: cpus().length,
    memoryBytes: totalmem(),
    architecture: architectures[arch()] ?? arch(),
    kernelVersion: release(),
    osImage: osImage(),
    address: external?.address ?? "127.0.0.1",
  };
}

function osImage(): string {
  try {
    const text = readFileSync("/etc/os-release", "utf8");
    return /^PRETTY_NAME="?([^"\n]*)"?$/m.exec(text)?.[1] || "Linux";
  } catch {
    return "Linux";
  }
}
