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

async function problemsOf(files: Record<string, string>): Promise<string[]> {
  for (const [path, source] of Object.entries(files)) {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), source);
  }
  return findRoomProblems(root);
}

describe("allowed", () => {
  it.each([
    ["downwards by the index", { "src/plugins/a.ts": 'import { b } from "../lib/index.ts";' }],
    ["within a room", { "src/lib/a.ts": 'export * from "./b.ts";', "src/lib/b.ts": "" }],
    ["generated code", { "src/plugins/a.ts": 'import type { B } from "../gen/b/v1/api.ts";' }],
    [
      "one-file rooms",
      { "src/main.ts": 'import "./agent.ts";', "src/agent.ts": 'import "./kube/index.ts";' },
    ],
    ["packages", { "src/lib/a.ts": 'import pino from "pino";\nimport { join } from "node:path";' }],
    ["tests, from anywhere", { "src/lib/a.test.ts": 'import { b } from "../kube/b.ts";' }],
    ["test helpers, from anywhere", { "src/lib/testing/a.ts": 'import { b } from "../../kube/b.ts";' }],
    [
      "the SDK from lib and gen",
      { "sdk/a.ts": 'import "@nodekeeper/core/lib";\nimport "../src/gen/x/api.ts";\nimport "./b.ts";' },
    ],
    [
      "what only looks like an import",
      { "src/lib/a.ts": '// import "../kube/b.ts";\nconst x = \'import "../kube/b.ts"\';' },
    ],
  ])("%s", async (_, files) => {
    expect(await problemsOf(files as unknown as Record<string, string>)).toEqual([]);
  });
});

describe("refused", () => {
  it.each([
    [
      "upwards",
      { "src/lib/a.ts": 'import { b } from "../kube/index.ts";' },
      "src/lib/a.ts:1: imports src/kube/index.ts: room lib is below kube",
    ],
    [
      "upwards, types too",
      { "src/state/a.ts": 'import type { B } from "../kube/index.ts";' },
      "room state is below kube",
    ],
    [
      "upwards, over lines",
      { "src/lib/a.ts": '\nimport {\n  b,\n  c,\n} from "../kube/index.ts";' },
      "src/lib/a.ts:2:",
    ],
    [
      "upwards by a dynamic import",
      { "src/lib/a.ts": 'const x = await import("../kube/index.ts");' },
      "below kube",
    ],
    ["upwards by an export", { "src/lib/a.ts": 'export * from "../kube/index.ts";' }, "below kube"],
    ["upwards by a bare import", { "src/lib/a.ts": 'import "../main.ts";' }, "below main.ts"],
    ["past the index", { "src/kube/a.ts": 'import { b } from "../lib/b.ts";' }, "imported by their index.ts"],
    [
      "of tests",
      { "src/kube/a.ts": 'import { b } from "./testing/b.ts";' },
      "only tests may import from tests",
    ],
    ["of the SDK", { "src/kube/a.ts": 'import { b } from "../../sdk/index.ts";' }, "what is outside"],
    [
      "the SDK from other rooms",
      { "sdk/a.ts": 'import "@nodekeeper/core/kube";' },
      "the SDK may only import",
    ],
    ["an unknown room", { "src/helpers/a.ts": "" }, "src/helpers: not a room"],
    ["an unknown file at the top", { "src/util.ts": "" }, "src/util.ts: not a room"],
    [
      "a cycle",
      {
        "src/lib/a.ts": 'import "./b.ts";',
        "src/lib/b.ts": 'import "./c.ts";',
        "src/lib/c.ts": 'import "./a.ts";',
      },
      "import cycle: src/lib/a.ts > src/lib/b.ts > src/lib/c.ts > src/lib/a.ts",
    ],
    [
      "a file's own import",
      { "src/lib/a.ts": 'import "./a.ts";' },
      "import cycle: src/lib/a.ts > src/lib/a.ts",
    ],
  ])("%s", async (_, files, expected) => {
    const problems = await problemsOf(files as unknown as Record<string, string>);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toContain(expected);
  });
});

it("finds every import of a file", () => {
  const source =
    'import a from "./a.ts";\nimport b, { type C } from "../b.ts";\n\nexport { d } from "./d.ts";\nexport const e = 5;\n';
  expect(readImports("src/lib/x.ts", source).map(({ to, line }) => `${to}:${line}`)).toEqual([
    "src/lib/a.ts:1",
    "src/b.ts:2",
    "src/lib/d.ts:4",
  ]);
});
