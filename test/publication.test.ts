import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { withPublication } from "../scripts/docs/publication.ts";

const REGISTRY = "registry.example/nodekeeper";
const pages = [
  "README.md",
  "docs/first-driver.md",
  "docs/guides/install.md",
  "docs/guides/kubectl-plugin.md",
  "docs/guides/monitoring.md",
  "docs/guides/plugins.md",
  "docs/guides/policies.md",
  "docs/install.md",
  "packages/sdk/README.md",
];

describe.each(pages)("%s", (path) => {
  const read = () => readFileSync(join(import.meta.dirname, "..", path), "utf8");
  const released = withPublication(path, read(), REGISTRY);

  it("shows commands from the registry once a release is published", () => {
    expect(released).not.toMatch(
      /not published|no published|helm (install|upgrade) \w+ deploy|--set image.repository=REGISTRY/,
    );
    expect(released).toMatch(
      /oci:\/\/registry\.example\/nodekeeper\/charts\/nodekeeper |provenance|npm install --global/,
    );
  });

  it("shows commands from source until then, also if it was switched before", () => {
    const fromSource = withPublication(path, read(), "");
    expect(withPublication(path, released, "")).toBe(fromSource);
    expect(withPublication(path, released, REGISTRY)).toBe(released);
  });
});

it("README.md needs no checkout once a release is published", () => {
  const readme = readFileSync(join(import.meta.dirname, "../README.md"), "utf8");
  const [, section] = /^## Try it\n(.*?)^## /ms.exec(withPublication("README.md", readme, REGISTRY)) ?? [];
  expect(section).toMatch(/^npx nodekeeper dev\b/m);
  expect(section).not.toMatch(/npm ci|npm start/);
});

it("an unknown text is refused", () => {
  const page = "<!-- publication: other -->\n<!-- /publication -->";
  expect(() => withPublication("docs/x.md", page, "")).toThrow(/docs\/x\.md: .*"other"/);
});
