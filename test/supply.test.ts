import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Ajv } from "ajv";
import { describe, expect, it } from "vitest";
import { type BundledPackage, eachOnce } from "../scripts/supply/bundled-packages.ts";
import { isAllowed, shippable } from "../scripts/supply/licences.ts";
import { problemsOf } from "../scripts/supply/lock.ts";
import { noticesOf } from "../scripts/supply/notices.ts";
import { publishedManifest } from "../scripts/supply/published-manifest.ts";
import { debianComponent, nodeComponent, npmComponents, sbomOf } from "../scripts/supply/sbom.ts";

const schemas = join(import.meta.dirname, "../node_modules/@cyclonedx/cyclonedx-library/res/schema");
const schema = (name: string) =>
  JSON.parse(readFileSync(join(schemas, `${name}.SNAPSHOT.schema.json`), "utf8"));

function packageOf(name: string, text = "MIT text"): BundledPackage {
  return { name, version: "1.2.3", licence: "(Apache-2.0 AND BSD-3-Clause)", text, sha512: "ab".repeat(64) };
}
const subject = {
  name: "nodekeeper",
  version: "0.1.0",
  licence: "Apache-2.0",
  description: "x",
  type: "container",
} as const;

describe("the bill of materials", () => {
  it("is valid CycloneDX 1.6", () => {
    const ajv = new Ajv({ strict: false, validateFormats: false });
    for (const name of ["spdx", "jsf-0.82", "cryptography-defs"])
      ajv.addSchema(schema(name), `http://cyclonedx.org/schema/${name}.SNAPSHOT.schema.json`);
    const validate = ajv.compile(schema("bom-1.6"));
    const components = [
      nodeComponent("24.0.0"),
      debianComponent("libstdc++6", "14.2.0-19", "arm64"),
      ...npmComponents([packageOf("@a/b"), packageOf("c")]),
    ];
    const document = JSON.parse(sbomOf(subject, components, 0));
    expect(validate(document), JSON.stringify(validate.errors)).toBe(true);
    expect(document.components.map(({ purl }: { purl: string }) => purl)).toEqual([
      "pkg:generic/nodejs@24.0.0",
      "pkg:deb/debian/libstdc%2B%2B6@14.2.0-19?arch=arm64",
      "pkg:npm/%40a/b@1.2.3",
      "pkg:npm/c@1.2.3",
    ]);
    document.components[0].type = "unknown";
    expect(validate(document)).toBe(false);
  });

  it("has a package once that is installed in several directories, and each of its versions", () => {
    const other = { ...packageOf("a"), version: "2.0.0" };
    const refs = npmComponents(eachOnce([packageOf("a"), packageOf("b"), packageOf("a"), other]));
    expect(refs.map(({ purl }) => purl)).toEqual(["pkg:npm/a@1.2.3", "pkg:npm/b@1.2.3", "pkg:npm/a@2.0.0"]);
  });

  it("is the same whenever it is made", () => {
    expect(sbomOf(subject, [nodeComponent("1")], 0)).toBe(sbomOf(subject, [nodeComponent("1")], 0));
  });
});

it("notices have each text once, and every package", () => {
  const text = noticesOf([packageOf("a"), packageOf("b"), packageOf("c", "other text")]);
  expect(text.split("MIT text")).toHaveLength(2);
  expect(text).toMatch(/a 1\.2\.3\nb 1\.2\.3\n/);
  expect(text).toContain("other text");
});

describe("a package that is published", () => {
  const { repository } = JSON.parse(readFileSync(join(import.meta.dirname, "../package.json"), "utf8"));

  it("names the repository of the workflow, or npm refuses its provenance", () => {
    const manifest = { name: "x", version: "1.0.0", description: "x", license: "x", devDependencies: {} };
    expect(publishedManifest(manifest, repository, "packages/x")).toEqual({
      ...{ name: "x", version: "1.0.0", description: "x", license: "x" },
      homepage: `${repository}/tree/main/packages/x#readme`,
      repository: { type: "git", url: `git+${repository}.git`, directory: "packages/x" },
      bugs: `${repository}/issues`,
    });
  });

  it("is of the repository that the README's badge is of", () => {
    const readme = readFileSync(join(import.meta.dirname, "../README.md"), "utf8");
    expect(readme).toContain(`](${repository}/actions/workflows/ci.yml/badge.svg)`);
  });
});

describe("licences", () => {
  it.each<[string, boolean]>([
    ["MIT", true],
    ["MIT OR GPL-3.0-only", true],
    ["(Apache-2.0 AND BSD-3-Clause)", true],
    ["MIT AND GPL-3.0-only", false],
    ["(MIT OR X) AND (GPL-3.0-only OR Y)", false],
    ["MPL-2.0", false],
    ["SEE LICENSE IN x", false],
  ])("%s may be shipped: %s", (expression, expected) => {
    expect(isAllowed(expression, shippable)).toBe(expected);
  });
});

describe("the lock file", () => {
  it("names packages without a hash, and those with another licence", () => {
    expect(problemsOf("node_modules/x", { license: "GPL-3.0-only" })).toEqual([
      "package-lock.json: node_modules/x: has no sha512 integrity",
      expect.stringContaining("licence GPL-3.0-only is not on the list"),
    ]);
    expect(problemsOf("node_modules/x", { license: "MIT", integrity: "sha1-x" })).toHaveLength(1);
  });

  it("needs no hash of binaries that are never installed here", () => {
    const optional = { license: "MIT", optional: true };
    expect(problemsOf("node_modules/x", { ...optional, os: ["darwin"], cpu: ["arm64"] })).toEqual([]);
    expect(
      problemsOf("node_modules/x", { ...optional, os: ["linux"], cpu: ["arm64"], libc: ["musl"] }),
    ).toEqual([]);
    expect(
      problemsOf("node_modules/x", { ...optional, os: ["linux"], cpu: ["arm64"], libc: ["glibc"] }),
    ).toHaveLength(1);
  });
});
