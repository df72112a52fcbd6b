import { readFileSync } from "node:fs";
import { arch, cpus, networkInterfaces, release, totalmem } from "node:os";

/** What a Node has of the machine below it. */
export interface Machine {
  /** Online CPUs. */
  cpus: number;
  memoryBytes: number;
  /** As Kubernetes has it: "amd64". */
  architecture: string;
  kernelVersion: string;
  osImage: string;
  /** An address that other machines reach, if there is one; else 127.0.0.1. */
  address: string;
}

/** The same whatever a test runs on. */
export const sampleMachine: Machine = {
  cpus: 4,
  memoryBytes: 8 * 1024 ** 3,
  architecture: "amd64",
  kernelVersion: "development",
  osImage: "development",
  address: "127.0.0.1",
};

// Node's names for what Kubernetes (Go) calls otherwise.
const architectures: Readonly<Record<string, string>> = { x64: "amd64", ia32: "386" };

/** The machine that this process runs on, as the agent's system reporter reads it. */
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
