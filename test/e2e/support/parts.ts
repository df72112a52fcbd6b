import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

/** A real part that `prepare.ts` put in place, or why it could not. */
export type Part = { readonly path: string; readonly version: string } | { readonly missing: string };

/** What the suite runs against. */
export const partNames = [
  "etcd",
  "openssl",
  "kubeApiServer",
  "oldKubeApiServer",
  "kubectl",
  "kubelet",
  "kubeScheduler",
  "kubeControllerManager",
  "cnrDefinition",
  "goReporter",
  "goEviction",
  "goDriver",
  "goPodResources",
  "katalystRounds",
  "goSampleDriver",
  "goPortedDriver",
  "pythonSampleDriver",
  "oldContainerd",
  "containerd",
  "newContainerd",
  "runc",
  "netContainerd",
  "netRunc",
  "cniPlugins",
  "busybox",
  "helm",
  "promtool",
  "otelCollector",
  "victoriaLogs",
  "dockerRegistry",
  "skopeo",
  "verdaccio",
  "buildah",
] as const;
export type PartName = (typeof partNames)[number];
/** What `startControlPlane` starts, and the definition that it installs. */
export const controlPlaneParts = ["etcd", "openssl", "kubeApiServer", "kubectl", "cnrDefinition"] as const;
/** What `Containerd` runs pods with. */
export const containerdParts = ["containerd", "runc", "busybox"] as const;

export type Parts = Readonly<Record<PartName, Part>>;

/** Binaries and downloads live outside the repository, so that a fresh clone finds them again. */
export const cacheDirectory = join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "nodekeeper-e2e");
export const partsFile = join(cacheDirectory, "parts.json");

/** The parts as the last run of `prepare.ts` left them. */
export function readParts(): Parts {
  try {
    const known = JSON.parse(readFileSync(partsFile, "utf8"));
    const notYet: Part = { missing: "`node test/e2e/prepare.ts` of this checkout has not been run" };
    return Object.fromEntries(partNames.map((name) => [name, known[name] ?? notYet])) as Parts;
  } catch (error) {
    throw new Error("run `npm run test:e2e`, which prepares the real parts first", { cause: error });
  }
}

/** Returns why these parts can't be run. Undefined if all are available. */
export function missingParts(...names: readonly PartName[]): string | undefined {
  const parts = readParts();
  const reasons = names.flatMap((name) => {
    const part = parts[name];
    return "missing" in part ? [`${name}: ${part.missing}`] : [];
  });
  return reasons.length > 0 ? reasons.join("; ") : undefined;
}

/** Returns the path of a part. Throws if the part is missing. */
export function pathOf(name: PartName): string {
  const part = readParts()[name];
  if ("missing" in part) throw new Error(`${name}: ${part.missing}`);
  return part.path;
}
