import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { isAllowed, usable } from "./licences.ts";

/** A package as package-lock.json has it. */
export interface LockedPackage {
  version?: string;
  /** Of its archive, as in Subresource Integrity: "sha512-…" in base64. */
  integrity?: string;
  license?: string;
  /** A package of this repository. */
  link?: boolean;
  optional?: boolean;
  os?: readonly string[];
  cpu?: readonly string[];
  libc?: readonly string[];
}

/** What package-lock.json has below node_modules/, by path; without the packages of this repository. */
export async function readLock(root: string): Promise<ReadonlyMap<string, LockedPackage>> {
  const { packages } = JSON.parse(await readFile(join(root, "package-lock.json"), "utf8"));
  const all = Object.entries(packages as Record<string, LockedPackage>);
  return new Map(all.filter(([path, { link }]) => path.includes("node_modules/") && !link));
}

/** Packages without integrity hash, or with a licence that is not on the list; one line each. */
export async function findLockProblems(root: string): Promise<string[]> {
  return [...(await readLock(root))].flatMap(([path, locked]) => problemsOf(path, locked));
}

/** As `findLockProblems`, for one package. */
export function problemsOf(path: string, locked: LockedPackage): string[] {
  const { integrity, license = "none" } = locked;
  return [
    ...(integrity?.startsWith("sha512-") || !isInstalledHere(locked)
      ? []
      : [`package-lock.json: ${path}: has no sha512 integrity`]),
    ...(isAllowed(license, usable)
      ? []
      : [`package-lock.json: ${path}: licence ${license} is not on the list of scripts/supply/licences.ts`]),
  ];
}

// Binaries of tools for other platforms than those that this project is developed, tested and built on. npm records no
// hash of those that its registry did not have when the lock file was written, and never installs them here.
function isInstalledHere({ optional, os, cpu, libc }: LockedPackage): boolean {
  if (!optional) return true;
  const has = (list: readonly string[] | undefined, ...names: string[]) =>
    !list || names.some((name) => list.includes(name));
  return has(os, "linux") && has(cpu, "x64", "arm64") && has(libc, "glibc");
}
