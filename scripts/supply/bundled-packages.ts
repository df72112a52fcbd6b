import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Metafile } from "esbuild";
import { root } from "../programs.ts";
import { isAllowed, shippable } from "./licences.ts";
import { readLock } from "./lock.ts";

/** A package of npm of which a bundle holds code. */
export interface BundledPackage {
  name: string;
  version: string;
  /** An SPDX expression. */
  licence: string;
  /** The text of its licence files. */
  text: string;
  /** SHA-512 of its archive in the registry, hexadecimal. */
  sha512: string;
}

/**
 * Returns the npm packages whose code is in bundles, sorted by name and version. Without a licence file, `text` is the
 * licence section of the package's README, or else one sentence that names the licence and the author.
 * @throws if a licence may not be shipped, or package-lock.json has no SHA-512 hash of a package
 */
export async function bundledPackages(metafiles: readonly Metafile[]): Promise<BundledPackage[]> {
  const inputs = metafiles.flatMap(({ outputs }) =>
    Object.values(outputs).flatMap((output) =>
      Object.entries(output.inputs).flatMap(([path, { bytesInOutput }]) => (bytesInOutput > 0 ? [path] : [])),
    ),
  );
  const directories = new Set(
    inputs.flatMap((path) => /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0] ?? []),
  );
  const lock = await readLock(root);
  const packages = await Promise.all(
    [...directories].map(async (directory): Promise<BundledPackage> => {
      const manifest = JSON.parse(await readFile(join(root, directory, "package.json"), "utf8"));
      const { name, version, license: licence } = manifest;
      const [, hash] = /^sha512-(\S+)$/.exec(lock.get(directory)?.integrity ?? "") ?? [];
      if (!hash) throw new Error(`${directory}: no sha512 integrity in package-lock.json`);
      if (!isAllowed(licence, shippable)) throw new Error(`${directory}: ${licence} may not be shipped`);
      return {
        name,
        version,
        licence,
        text: await licenceText(directory),
        sha512: Buffer.from(hash, "base64").toString("hex"),
      };
    }),
  );
  return eachOnce(packages).sort((a, b) =>
    a.name < b.name ? -1 : a.name > b.name ? 1 : a.version < b.version ? -1 : 1,
  );
}

/** Packages without repetition: npm may have installed one version in several directories. */
export function eachOnce<P extends Pick<BundledPackage, "name" | "version">>(packages: readonly P[]): P[] {
  return [...new Map(packages.map((each) => [`${each.name}@${each.version}`, each])).values()];
}

async function licenceText(directory: string): Promise<string> {
  const names = (await readdir(join(root, directory)))
    .filter((name) => /^(?:licen[cs]e|copying|notice)/i.test(name))
    .sort();
  const texts = await Promise.all(names.map((name) => readFile(join(root, directory, name), "utf8")));
  if (texts.length > 0) return texts.map((text) => text.trim()).join("\n\n");
  // Some packages have it in their description alone.
  const readme = await readFile(join(root, directory, "README.md"), "utf8").catch(() => "");
  const [, section] = /^#+ licen[cs]e\s*\n([\s\S]+)/im.exec(readme) ?? [];
  if (section) return section.trim();
  const { author = "its authors", license } = JSON.parse(
    await readFile(join(root, directory, "package.json"), "utf8"),
  );
  return `${license}, by ${typeof author === "string" ? author : author.name}; the package has no text of it.`;
}
