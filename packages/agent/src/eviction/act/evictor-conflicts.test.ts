import { describe, expect, it } from "vitest";
import { again, testEvictors, victim } from "../testing/evictor-setup.ts";

const setup = testEvictors();

describe("an eviction of a pod that changes after each read", () => {
  const conflict = again({ message: "409", isConflict: true });

  it("is sent again at once, with the version of a new read", async () => {
    const test = setup(["web"]);
    let version = 1;
    test.onKill = async () => {
      test.put("web", { metadata: { resourceVersion: `${++version}` } });
      return version < 5 ? conflict : { kind: "accepted", message: "POST eviction: accepted" };
    };
    await test.evict(victim("web"));
    expect(test.kills.map(({ resourceVersion }) => resourceVersion)).toEqual(["1", "2", "3", "4"]);
    expect(test.steps()).toContain("409; the pod is read again");
    test.remove("web");
    expect(test.outcome()).toMatchObject({ result: "terminated" });
  });

  it("is retried after a delay once that was in vain a few times, and fails in the end", async () => {
    const test = setup(["web"]);
    test.onKill = async () => conflict;
    await test.evict(victim("web"));
    expect(test.kills).toHaveLength(6);
    await test.clock.step(60_000);
    expect(test.kills).toHaveLength(8);
    expect(test.outcome()).toMatchObject({ result: "failed", sent: false });
  });

  it("says if the refused request may have used the disruption budget", async () => {
    const test = setup(["web"]);
    const refused = { kind: "failed", message: "429: no disruption now", isBudget: true } as const;
    test.onKill = async () => (test.kills.length === 1 ? conflict : refused);
    await test.evict(victim("web"));
    const message = "429: no disruption now; the request that was answered 409 before may have used it";
    expect(test.outcome()).toMatchObject({ result: "failed", message });
  });

  it("is not sent again if the change was the deletion by another client", async () => {
    const test = setup(["web"]);
    test.onKill = async () => {
      test.terminate("web");
      return conflict;
    };
    await test.evict(victim("web"));
    test.remove("web");
    const message = "pod deleted; it was terminating before its eviction was accepted";
    expect(test.kills).toHaveLength(1);
    expect(test.outcome()).toMatchObject({ result: "superseded", message });
    expect(test.events).toEqual([]);
  });

  it("is not sent again if it became protected", async () => {
    const test = setup(["web"]);
    test.onKill = async () => {
      test.put("web", { spec: { nodeName: "node-2" } });
      return conflict;
    };
    await test.evict(victim("web"));
    expect(test.kills).toHaveLength(1);
    expect(test.outcome()).toMatchObject({ result: "failed", sent: false });
  });
});
