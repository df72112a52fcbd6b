import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { MetadataDirectory } from "./metadata-directory.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "nkmd-"));
});
afterEach(() => rmSync(directory, { recursive: true }));

it("files of claims that are not recorded are removed, and nothing that is not the agent's", async () => {
  for (const [name, file] of [
    ["gpu.example.com_uid-1", "req.json"],
    ["gpu.example.com_uid-2", "req.json"],
    ["gpu.example.com_uid-3", "req.json.0a1b2c3d.tmp"],
    ["gpu.example.com_uid-4", "notes.txt"],
    ["other", "req.json"],
  ] as const) {
    mkdirSync(join(directory, name));
    writeFileSync(join(directory, name, file), "");
  }
  writeFileSync(join(directory, "state.db"), "");
  writeFileSync(join(directory, "gpu.example.com_file"), "");
  await new MetadataDirectory(directory).removeExcept([{ driver: "gpu.example.com", uid: "uid-1" }]);
  expect(readdirSync(directory).sort()).toEqual([
    "gpu.example.com_file",
    "gpu.example.com_uid-1",
    "gpu.example.com_uid-4",
    "other",
    "state.db",
  ]);
});
