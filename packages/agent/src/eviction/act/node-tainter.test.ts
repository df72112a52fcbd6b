import { describe, expect, it } from "vitest";
import type { LiveTaint } from "../parts.ts";
import { failing } from "../testing/fake-node.ts";
import { foreign, setUp, squeeze } from "../testing/tainter-setup.ts";

describe("what another client does", () => {
  it.each<[string, LiveTaint[]]>([
    ["a removed taint", [foreign]],
    ["a changed value", [{ ...squeeze, value: "x" }, foreign]],
  ])("%s is put back, and foreign taints stay", async (_, taints) => {
    await using test = setUp();
    test.node.put([foreign]);
    await test.rounds(2, "Squeeze");
    test.node.put(taints);
    await test.rounds(1, "Squeeze");
    expect(test.node.taints).toHaveLength(2);
    expect(test.node.taints).toContainEqual(foreign);
    expect(test.node.taints!.find(({ key }) => key === squeeze.key)?.value).toBeUndefined();
    expect(test.health().ok).toBe(true);
  });

  it("a client that removes ours each time is answered ever more slowly, and health names the conflict", async () => {
    await using test = setUp();
    await test.rounds(2, "Squeeze");
    for (let second = 0; second < 300; second++) {
      test.node.put([]);
      await test.clock.step(1_000);
    }
    expect(test.node.count("patch")).toBeLessThan(25);
    expect(test.health()).toEqual({
      ok: false,
      message: expect.stringContaining("another client keeps changing"),
      errorId: "NK1614",
    });
    await test.rounds(70, "Squeeze");
    expect(test.ids()).toEqual(["nodekeeper.dev/Squeeze:NoSchedule"]);
    expect(test.health().ok).toBe(true);
  });

  it.each([[["Squeeze"]], [[]]])(
    "a deleted Node fails no check, wanted %j, and has its taints when it is back",
    async (wanted) => {
      await using test = setUp();
      await test.rounds(2, "Squeeze");
      test.node.fault = (call) => (call === "patch" ? failing("unavailable") : undefined);
      await test.rounds(2, "Squeeze", "Other");
      test.node.put(undefined);
      test.node.fault = () => undefined;
      await test.rounds(30, ...wanted);
      expect(test.health()).toEqual({ ok: true, message: "Node node-1 does not exist" });
      test.node.put([]);
      await test.rounds(1, ...wanted);
      expect(test.ids()).toEqual(wanted.map((name) => `nodekeeper.dev/${name}:NoSchedule`));
    },
  );
});

describe("what is not the agent's", () => {
  it("stays although it has the prefix, or equals a desired taint, and when the condition clears", async () => {
    const theirs = { ...squeeze, value: "x" };
    const other = { key: "nodekeeper.dev/Other", effect: "NoExecute" };
    await using test = setUp();
    test.node.put([theirs, other]);
    await test.rounds(3, "Squeeze");
    await test.rounds(3);
    expect(test.node.taints).toEqual([theirs, other]);
    expect(test.node.count("patch")).toBe(0);
    await test.rounds(2, "Hot");
    await test.rounds(2);
    expect(test.node.taints).toEqual([theirs, other]);
    expect(test.node.annotation).toBeNull();
    expect(test.health().ok).toBe(true);
  });
});

describe("while it is suspended", () => {
  it("writes nothing: no taint is removed, restored or added", async () => {
    await using test = setUp();
    await test.rounds(2, "Squeeze");
    const patches = test.node.count("patch");
    test.tainter.suspend();
    test.node.put([foreign]);
    await test.clock.step(600_000);
    test.node.put([foreign, { ...squeeze, value: "x" }]);
    await test.clock.step(600_000);
    expect(test.node.count("patch")).toBe(patches);
    expect(test.health()).toEqual({ ok: true, message: "dry run: the Node's taints are left as they are" });
    await test.rounds(1);
    expect(test.node.taints).toEqual([foreign]);
  });

  it("warns of the taints that stay, once in each dry run", async () => {
    await using test = setUp();
    const left = () => test.warnings.filter((message) => message.startsWith("dry run leaves taints"));
    for (const times of [1, 2]) {
      await test.rounds(2, "Squeeze");
      test.tainter.suspend();
      test.node.put([...test.node.taints!, foreign]);
      await test.clock.step(60_000);
      expect(left()).toHaveLength(times);
    }
  });

  it("drops a write whose Node is being read", async () => {
    await using test = setUp();
    await test.rounds(1);
    test.node.fault = (call) => {
      if (call === "get") test.tainter.suspend();
      return undefined;
    };
    await test.rounds(1, "Squeeze");
    expect(test.node.count("get")).toBe(1);
    expect(test.node.taints).toEqual([]);
  });
});

describe("another client is named by managedFields", () => {
  it.each<[string, LiveTaint[], string, string]>([
    [
      "that removed a taint beside others",
      [foreign],
      "taintRemoved: taint nodekeeper.dev/Squeeze:NoSchedule removed by kubectl-taint (Update at 2026-11-21T04:00:00Z)",
      "taintAdded: taint nodekeeper.dev/Squeeze:NoSchedule restored after its removal by kubectl-taint (Update at 2026-11-21T04:00:00Z): ",
    ],
    [
      "that removed the last one, after which managedFields have no owner",
      [],
      "taintRemoved: taint nodekeeper.dev/Squeeze:NoSchedule removed by another client",
      "taintAdded: taint nodekeeper.dev/Squeeze:NoSchedule restored after its removal by another client: ",
    ],
    [
      "that changed its value",
      [{ ...squeeze, value: "x" }],
      "taintChanged: taint nodekeeper.dev/Squeeze:NoSchedule changed by kubectl-taint (Update at 2026-11-21T04:00:00Z)",
      "taintChanged: taint nodekeeper.dev/Squeeze:NoSchedule restored after its change by kubectl-taint (Update at 2026-11-21T04:00:00Z): its value was removed",
    ],
  ])("%s", async (_, taints, lost, restored) => {
    await using test = setUp();
    await test.rounds(2, "Squeeze");
    test.changes.length = 0;
    test.node.put(taints);
    await test.rounds(2, "Squeeze");
    expect(test.changes).toEqual([lost, restored]);
    // The agent's own removal is none by another client.
    test.changes.length = 0;
    await test.rounds(2);
    expect(test.changes).toEqual([expect.stringMatching(/^taintRemoved: .*no longer reported/)]);
  });
});
