import { describe, expect, it } from "vitest";
import { type HeapSnapshot, heapAccountOf } from "../../bench/heap-account.ts";
import { accountOf } from "../../bench/memory-account.ts";

const MIB = 2 ** 20;

interface Mapped {
  range: string;
  access?: string;
  name?: string;
  megabytes: number;
}

const smapsOf = (...mappings: Mapped[]) =>
  mappings
    .map(
      ({ range, access = "rw-p", name = "", megabytes }) =>
        `${range} ${access} 00000000 00:00 0    ${name}\nRss: ${megabytes * 1024} kB\nAnonymous: ${megabytes * 1024} kB\n`,
    )
    .join("");

const emptyReport = {
  spaces: [],
  code: { code_and_metadata_size: 0, bytecode_and_metadata_size: 0, external_script_source_size: 0 },
  memory: { rss: 0, heapTotal: 0, heapUsed: 0, external: 0, arrayBuffers: 0 },
};

describe("the account of a process", () => {
  it("adds up to the resident memory", () => {
    const space = { space_name: "old_space", physical_space_size: 3 * MIB } as const;
    const account = accountOf(
      smapsOf(
        { range: "1000-2000", access: "r-xp", name: "/opt/node", megabytes: 40 },
        { range: "2000-3000", access: "r-xp", name: "/lib/libc.so.6", megabytes: 2 },
        { range: "3000-4000", name: "[heap]", megabytes: 5 },
        { range: "4000-5000", megabytes: 7 },
        { range: "5000-6000", name: "[stack]", megabytes: 1 },
      ),
      { ...emptyReport, spaces: [{ ...space, space_size: 0, space_used_size: 0, space_available_size: 0 }] },
    );
    expect(account).toMatchObject({
      RSS: 55,
      "pages of Node's executable": 40,
      "pages of libraries": 2,
      "heap of glibc": 5,
      "other anonymous mappings": 8,
      "V8's heap": 3,
      "stacks of threads": 1,
      "mapped buffers and the rest": 4,
    });
  });

  it.each<[string, number, guard: string, Mapped]>([
    ["above a guard page", 1, "1000-2000", { range: "2000-802000", megabytes: 1 }],
    ["above a larger mapping without access", 0, "1000-3000", { range: "3000-803000", megabytes: 1 }],
    ["above a guard page that does not end there", 0, "1000-2000", { range: "3000-803000", megabytes: 1 }],
    ["above a guard page, merged with others", 8, "1000-2000", { range: "2000-2000000", megabytes: 30 }],
    ["of a file", 0, "1000-2000", { range: "2000-802000", name: "/dev/shm/x", megabytes: 1 }],
  ])("a mapping %s has %d MB of stacks", (_, stacks, guard, mapping) => {
    const smaps = smapsOf({ range: guard, access: "---p", megabytes: 0 }, mapping);
    expect(accountOf(smaps, emptyReport)["stacks of threads"]).toBe(stacks);
  });
});

describe("the account of a heap", () => {
  const types = ["hidden", "string", "object", "code", "sliced string"];
  const snapshotOf = (...nodes: [type: string, name: string, megabytes: number][]): HeapSnapshot => ({
    snapshot: {
      meta: {
        node_fields: ["type", "name", "id", "self_size"],
        node_types: [types, "string", "number", "number"],
      },
    },
    nodes: nodes.flatMap(([type, , megabytes], at) => [types.indexOf(type), at, at, megabytes * MIB]),
    strings: nodes.map(([, name]) => name),
  });

  it("sums what is reachable by kind and by constructor, largest first", () => {
    const account = heapAccountOf(
      snapshotOf(
        ["object", "Map", 1],
        ["object", "Pod", 2],
        ["object", "Map", 4],
        ["string", "a", 1],
        ["sliced string", "b", 1],
        ["hidden", "system", 1],
      ),
    );
    expect(Object.entries(account)).toEqual([
      ["reachable: objects", 7],
      ["reachable: strings and texts of scripts", 2],
      ["reachable: other", 1],
      ["objects of Map", 5],
      ["objects of Pod", 2],
    ]);
  });

  it("names the ten constructors with most", () => {
    const nodes = Array.from({ length: 12 }, (_, at): [string, string, number] => [
      "object",
      `C${at}`,
      at + 1,
    ]);
    const constructors = Object.keys(heapAccountOf(snapshotOf(...nodes))).filter((row) =>
      row.startsWith("objects of"),
    );
    expect(constructors).toHaveLength(10);
    expect(constructors[0]).toBe("objects of C11");
  });
});
