import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { HostFiles } from "./host-files.ts";

const noAbort = new AbortController().signal;
let root: string;

beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), "nkhost-"));
  for (const directory of ["sys", "proc"]) mkdirSync(join(root, directory));
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

it.each([0, 3, 4_095, 4_096, 4_097, 20_000])("reads a file of %i bytes to its end", async (length) => {
  const files = new HostFiles(root);
  const text = "x".repeat(length);
  for (const path of ["/sys/file", "/proc/file"]) {
    writeFileSync(join(root, path), `${text}\n`);
    expect(await files.text(path, noAbort)).toBe(text);
    const short = files.text(path, noAbort, { cap: 2 });
    if (length < 2) expect(await short).toBe(text);
    else await expect(short).rejects.toMatchObject({ code: "exhausted" });
    expect(await files.text(path, noAbort, { cap: 2, truncate: true })).toBe(text.slice(0, 2));
  }
});

it("returns undefined for a file that is absent, and throws for a directory", async () => {
  const files = new HostFiles(root);
  expect(await files.text("/sys/absent", noAbort)).toBeUndefined();
  await expect(files.text("/sys", noAbort)).rejects.toMatchObject({ code: "unavailable" });
});

it("reads a sampled file again that was replaced, also if it was empty", () => {
  const { kernel } = new HostFiles(root);
  for (const text of ["one", "", "two"]) {
    rmSync(join(root, "proc/meminfo"), { force: true });
    writeFileSync(join(root, "proc/meminfo"), text);
    expect(kernel.text("/proc/meminfo")).toBe(text);
  }
});

it("keeps sampled files of the kernel open, and reads them from their start each time", () => {
  const { kernel } = new HostFiles("/");
  const descriptors = () => readdirSync("/proc/self/fd").length;
  const total = () => /^MemTotal: .*$/m.exec(kernel.text("/proc/meminfo") ?? "")?.[0];
  const before = descriptors();
  const first = total();
  expect(first).toMatch(/kB$/);
  const once = descriptors();
  for (let time = 0; time < 5; time++) {
    expect(total()).toBe(first);
    kernel.text("/proc/uptime");
  }
  expect([once - before, descriptors() - before]).toEqual([1, 1]);
});
