import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, it } from "vitest";
import { foreignAddresses } from "../../scripts/docs/foreign.ts";
import { buildPage } from "../../scripts/page-bundle.ts";

const LARGEST_BYTES = 60_000;

let folder: string;
const files = new Map<string, Buffer>();
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "nk-bundle-"));
  await buildPage(folder);
  for (const name of readdirSync(folder)) files.set(name, readFileSync(join(folder, name)));
});
afterAll(() => rmSync(folder, { recursive: true }));

it("all files of the page together are under 60 KB, compressed", () => {
  const sizes = [...files].map(([name, bytes]) => [name, gzipSync(bytes, { level: 9 }).length] as const);
  const total = sizes.reduce((sum, [, size]) => sum + size, 0);
  expect(total, JSON.stringify(sizes)).toBeLessThan(LARGEST_BYTES);
});

it("no file of the page loads anything from another host", () => {
  const found = [...files].flatMap(([name, bytes]) =>
    foreignAddresses(bytes.toString()).map((address) => `${name}: ${address}`),
  );
  expect(found).toEqual([]);
});
