import { describe, expect, it } from "vitest";
import { type Call, failing } from "../testing/fake-node.ts";
import { foreign, setUp, squeeze } from "../testing/tainter-setup.ts";

describe("taints of a Node that can't be listed or watched", () => {
  it.each<Call>(["list", "watch"])(
    "are set all the same, and health names the missing right (%s)",
    async (call) => {
      await using test = setUp((one) => (one === call ? failing("forbidden") : undefined));
      await test.rounds(120, "Squeeze");
      expect(test.ids()).toEqual(["nodekeeper.dev/Squeeze:NoSchedule"]);
      expect(test.health()).toEqual({
        ok: false,
        message: expect.stringMatching(/not seen: .*it is forbidden/),
      });
      // Nothing is read or written again and again where nothing changes.
      expect(test.node.count("get")).toBeLessThanOrEqual(2);
      test.node.fault = () => undefined;
      await test.rounds(12, "Squeeze");
      expect(test.health().ok).toBe(true);
    },
  );

  it("fail the check at once where they can't be written either", async () => {
    await using test = setUp(() => failing("forbidden"));
    await test.rounds(2, "Squeeze");
    expect(test.health()).toEqual({
      ok: false,
      message: expect.stringMatching(/does not have the desired taints.*forbidden/),
      errorId: "NK1614",
    });
  });

  it("fail the check if the server is unavailable from the start", async () => {
    await using test = setUp(() => failing("unavailable"));
    await test.clock.step(10_000);
    expect(test.health().ok).toBe(false);
    await test.rounds(13, "Squeeze");
    expect(test.health()).toEqual({
      ok: false,
      message: expect.stringMatching(/for \d\d s: it is unavailable/),
      errorId: "NK1614",
    });
  });
});

describe("a write that fails", () => {
  it("is not repeated before the time of Retry-After, whatever rounds want meanwhile", async () => {
    await using test = setUp();
    test.node.fault = (call) => (call === "patch" ? failing("throttled", 60_000) : undefined);
    await test.rounds(12, "Squeeze");
    await test.rounds(12, "Squeeze", "Other");
    // At 0, 60 and 120 s.
    expect(test.node.count("patch")).toBeLessThanOrEqual(3);
    expect(test.health()).toMatchObject({ ok: false, message: expect.stringContaining("throttled") });
    test.node.fault = () => undefined;
    await test.rounds(13, "Squeeze", "Other");
    expect(test.ids()).toHaveLength(2);
    expect(test.health().ok).toBe(true);
  });

  it("does not hide, once it succeeds, what another client changed before its answer came", async () => {
    await using test = setUp();
    test.node.fault = (call) => (call === "patch" ? failing("unavailable") : undefined);
    await test.rounds(1, "Squeeze");
    test.node.fault = () => undefined;
    test.node.beforeAnswer = () => test.node.put([foreign]);
    await test.rounds(12, "Squeeze");
    expect(test.node.beforeAnswer).toBeUndefined();
    expect(test.node.taints).toEqual([foreign, squeeze].map((taint) => expect.objectContaining(taint)));
  });

  it("is repeated ever more slowly without one", async () => {
    await using test = setUp();
    test.node.fault = (call) => (call === "patch" ? failing("unavailable") : undefined);
    await test.rounds(24, "Squeeze");
    // 0.5, 0.5, 1, 1, 2, 2 s and so on, up to 30; of equal delays the first is a random part.
    expect(test.node.count("patch")).toBeLessThanOrEqual(18);
  });
});
