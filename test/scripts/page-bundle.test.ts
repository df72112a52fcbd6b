import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, it } from "vitest";
import { foreignAddresses } from "../../scripts/docs/foreign.ts";
import { buildPage, type PageOutputs, viewFiles } from "../../scripts/page-bundle.ts";

const LARGEST_BYTES = 63_000;

let directory: string;
let outputs: PageOutputs;
const files = new Map<string, Buffer>();
beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "nk-bundle-"));
  ({ outputs } = await buildPage(directory));
  for (const name of readdirSync(directory)) files.set(name, readFileSync(join(directory, name)));
});
afterAll(() => rmSync(directory, { recursive: true }));

it.each(["timeline", "pod", "now", "plugins", "resources", "what-if", "round"])(
  "what the view %s loads is under 63 KB, compressed",
  (view) => {
    const sizes = viewFiles(outputs, view).map((path) => {
      const name = basename(path);
      return [name, gzipSync(files.get(name)!, { level: 9 }).length] as const;
    });
    expect(sizes.map(([name]) => name)).toEqual(expect.arrayContaining(["main.js", "main.css"]));
    const total = sizes.reduce((sum, [, size]) => sum + size, 0);
    expect(total, JSON.stringify(sizes)).toBeLessThan(LARGEST_BYTES);
  },
);

it("no file of the page loads anything from another host", () => {
  const found = [...files].flatMap(([name, bytes]) =>
    foreignAddresses(bytes.toString()).map((address) => `${name}: ${address}`),
  );
  expect(found).toEqual([]);
});
