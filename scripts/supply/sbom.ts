import type { BundledPackage } from "./bundled-packages.ts";

/** What a bill of materials is of. */
export interface Subject {
  name: string;
  version: string;
  /** An SPDX expression. */
  licence: string;
  description: string;
  type: "application" | "container";
}

/** A part of it: cyclonedx.org/docs/1.6/json, `components`. */
export interface Component {
  type: "library" | "application" | "operating-system";
  name: string;
  version: string;
  "bom-ref": string;
  purl: string;
  licenses?: readonly { expression: string }[];
  hashes?: readonly { alg: "SHA-512"; content: string }[];
}

/**
 * A bill of materials: CycloneDX 1.6, JSON. The same input gives the same bytes: it has neither a serial number nor a time
 * other than `epochSeconds`.
 * @param epochSeconds SOURCE_DATE_EPOCH of reproducible-builds.org
 */
export function sbomOf(subject: Subject, components: readonly Component[], epochSeconds: number): string {
  const { name, version, licence, description, type } = subject;
  const ref = `pkg:generic/${name}@${version}`;
  const document = {
    $schema: "http://cyclonedx.org/schema/bom-1.6.schema.json",
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    version: 1,
    metadata: {
      timestamp: new Date(epochSeconds * 1000).toISOString(),
      component: { type, name, version, "bom-ref": ref, description, licenses: [{ expression: licence }] },
    },
    components,
    dependencies: [{ ref, dependsOn: components.map((each) => each["bom-ref"]) }],
  };
  return `${JSON.stringify(document, undefined, 2)}\n`;
}

/** Packages of npm, whose code a bundle holds. */
export function npmComponents(packages: readonly BundledPackage[]): Component[] {
  return packages.map(({ name, version, licence, sha512 }) => {
    const purl = `pkg:npm/${name.replace("@", "%40")}@${version}`;
    const licenses = [{ expression: licence }];
    return {
      type: "library",
      name,
      version,
      "bom-ref": purl,
      purl,
      licenses,
      hashes: [{ alg: "SHA-512", content: sha512 }],
    };
  });
}

/** Node's executable. */
export function nodeComponent(version: string): Component {
  const purl = `pkg:generic/nodejs@${version}`;
  return { type: "application", name: "node", version, "bom-ref": purl, purl };
}

/** A package of Debian. Its licences are in its copyright file, not in its control data. */
export function debianComponent(name: string, version: string, architecture: string): Component {
  const purl = `pkg:deb/debian/${encodeURIComponent(name)}@${encodeURIComponent(version)}?arch=${architecture}`;
  return { type: "library", name, version, "bom-ref": purl, purl };
}
