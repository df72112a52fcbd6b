import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Metafile } from "esbuild";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { buildKubectlPlugin, importedAtOnce } from "../scripts/kubectl-plugin.ts";
import { bundledPackages } from "../scripts/supply/bundled-packages.ts";

let directory: string;
let metafiles: Metafile[];
beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "nk-bundle-"));
  metafiles = await buildKubectlPlugin(directory);
});
afterAll(() => rmSync(directory, { recursive: true }));

describe("the plugin of kubectl", () => {
  it("has code of commander and of the page alone, and not of the agent's log, metrics and gRPC", async () => {
    expect((await bundledPackages(metafiles)).map(({ name }) => name)).toEqual(["commander", "preact"]);
  });

  it.each([
    [["version"], /^nodekeeper \d+\.\d+\.\d+ /],
    [["completion", "bash"], /complete/],
  ])("runs %j, which was loaded on demand", (args, text) => {
    expect(
      execFileSync(process.execPath, [join(directory, "kubectl-nodekeeper.cjs"), ...args], {
        encoding: "utf8",
      }),
    ).toMatch(text);
  });
});

it("imports on demand become imports at the top", () => {
  const text = `async function a() {
  const { b, c: d } = await import("./b.ts");
  return d((await import("node:os")).hostname(), b);
}`;
  expect(importedAtOnce(text)).toBe(`import { b, c as  d } from "./b.ts";
import * as imported__node_os_ from "node:os";
async function a() {
  
  return d((imported__node_os_).hostname(), b);
}`);
});
