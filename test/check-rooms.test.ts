import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { findRoomProblems, readImports } from "../scripts/rooms.ts";

let root: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "nodekeeper-rooms-"));
});
afterEach(() => rm(root, { recursive: true }));

/** @param files their sources by path below packages/ */
async function problemsOf(files: Record<string, string>): Promise<string[]> {
  for (const [name, source] of Object.entries(files)) {
    const path = join(root, "packages", name);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, source);
  }
  return findRoomProblems(root);
}

describe("allowed", () => {
  it.each([
    ["downwards by the index", { "agent/src/plugins/a.ts": 'import { b } from "../state/index.ts";' }],
    ["within a room", { "core/src/lib/a.ts": 'export * from "./b.ts";', "core/src/lib/b.ts": "" }],
    ["generated code", { "core/src/grpc/a.ts": 'import type { B } from "../gen/b/v1/api.ts";' }],
    [
      "one-file rooms",
      { "agent/src/main.ts": 'import "./agent.ts";', "agent/src/agent.ts": 'import "./state/index.ts";' },
    ],
    [
      "packages below",
      {
        "agent/src/cli/a.ts":
          'import { a } from "@nodekeeper/sdk";\nimport { b } from "@nodekeeper/testing";',
        "sdk/src/a.ts":
          'import "@nodekeeper/core/lib";\nimport "@nodekeeper/core/gen/x/api.ts";\nimport "./b.ts";',
      },
    ],
    [
      "packages of others",
      { "core/src/lib/a.ts": 'import pino from "pino";\nimport { join } from "node:path";' },
    ],
    ["the manifest of its own package", { "agent/src/main.ts": 'import "../package.json";' }],
    ["tests, from anywhere", { "core/src/lib/a.test.ts": 'import { b } from "../kube/b.ts";' }],
    ["test helpers, from anywhere", { "core/src/lib/testing/a.ts": 'import { b } from "../../kube/b.ts";' }],
    ["plans from lib", { "agent/src/devices/plan/a.ts": 'import "@nodekeeper/core/lib";\nimport "./b.ts";' }],
    [
      "layers below",
      {
        "agent/src/devices/index.ts": 'import "./sync/a.ts";',
        "agent/src/devices/sync/a.ts": 'import "../plan/b.ts";\nimport "../model/c.ts";',
        "agent/src/devices/plan/b.ts": 'import "../model/c.ts";\nimport "@nodekeeper/core/lib";',
      },
    ],
    [
      "what only looks like an import",
      { "core/src/lib/a.ts": '// import "../kube/b.ts";\nconst x = \'import "../kube/b.ts"\';' },
    ],
  ])("%s", async (_, files) => {
    expect(await problemsOf(files as unknown as Record<string, string>)).toEqual([]);
  });
});

describe("refused", () => {
  it.each([
    [
      "upwards",
      { "core/src/lib/a.ts": 'import { b } from "../kube/index.ts";' },
      "packages/core/src/lib/a.ts:1: imports packages/core/src/kube/index.ts: room lib is below kube",
    ],
    [
      "upwards, types too",
      { "agent/src/state/a.ts": 'import type { B } from "../host/index.ts";' },
      "room state is below host",
    ],
    [
      "upwards, over lines",
      { "core/src/lib/a.ts": '\nimport {\n  b,\n  c,\n} from "../kube/index.ts";' },
      "packages/core/src/lib/a.ts:2:",
    ],
    [
      "upwards by a dynamic import",
      { "core/src/lib/a.ts": 'const x = await import("../kube/index.ts");' },
      "below kube",
    ],
    ["upwards by an export", { "core/src/lib/a.ts": 'export * from "../kube/index.ts";' }, "below kube"],
    ["upwards by a bare import", { "agent/src/cli/a.ts": 'import "../main.ts";' }, "below main.ts"],
    [
      "past the index",
      { "core/src/kube/a.ts": 'import { b } from "../lib/b.ts";' },
      "imported by their index.ts",
    ],
    [
      "past the index of another package",
      { "sdk/src/a.ts": 'import { b } from "@nodekeeper/core/lib/b.ts";' },
      "imported by their index.ts",
    ],
    [
      "of another package by its path",
      { "sdk/src/a.ts": 'import { b } from "../../core/src/lib/index.ts";' },
      "imported by their names, @nodekeeper/core",
    ],
    [
      "of tests",
      { "core/src/kube/a.ts": 'import { b } from "./testing/b.ts";' },
      "only tests may import from tests",
    ],
    [
      "what is outside",
      { "core/src/kube/a.ts": 'import { b } from "../../../../test/b.ts";' },
      "what is outside of packages",
    ],
    [
      "a package above",
      { "sdk/src/a.ts": 'import { b } from "@nodekeeper/testing";' },
      "package sdk may not import package testing",
    ],
    [
      "what is not pure from plans",
      { "agent/src/devices/plan/a.ts": 'import "../b.ts";' },
      "packages/agent/src/devices/plan is pure",
    ],
    [
      "upwards between layers",
      { "agent/src/devices/plan/a.ts": 'import "../sync/b.ts";' },
      "packages/agent/src/devices/plan is pure",
    ],
    [
      "upwards between layers, where they are not pure",
      { "agent/src/devices/model/a.ts": 'import "../plan/b.ts";' },
      "layer model is below plan",
    ],
    [
      "the index from a layer",
      { "agent/src/devices/sync/a.ts": 'import "../index.ts";' },
      "layer sync is below packages/agent/src/devices",
    ],
    ["an unknown room", { "agent/src/helpers/a.ts": "" }, "packages/agent/src/helpers: not in the lists"],
    [
      "an unknown file at the top",
      { "agent/src/util.ts": "" },
      "packages/agent/src/util.ts: not in the lists",
    ],
    ["an unknown package", { "extra/src/a.ts": "" }, "packages/extra: not in the lists"],
  ])("%s", async (_, files, expected) => {
    const problems = await problemsOf(files as unknown as Record<string, string>);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain(expected);
  });
});

it("finds every import of a file", () => {
  const source =
    'import a from "./a.ts";\nimport b, { type C } from "@nodekeeper/core/lib";\n\nexport { d } from "./d.ts";\nexport const e = 5;\n';
  expect(readImports("packages/sdk/src/x.ts", source).map(({ to, line }) => `${to}:${line}`)).toEqual([
    "packages/sdk/src/a.ts:1",
    "packages/core/src/lib/index.ts:2",
    "packages/sdk/src/d.ts:4",
  ]);
});
