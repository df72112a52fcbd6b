import { describe, expect, it } from "vitest";
import { pending, type TestEvictor, testEvictors } from "../testing/evictor-setup.ts";

const setup = testEvictors();

describe("a new agent", () => {
  it("never sends what the one before it had sent", async () => {
    const test = setup(["web"]);
    test.evictor.resume([pending("web")]);
    test.start();
    await test.clock.step(0);
    expect(test.kills).toEqual([]);
    expect(test.outcome()).toMatchObject({
      result: "failed",
      sent: true,
      message: "the eviction was accepted, but the pod is not terminating",
    });
  });

  it.each([
    ["exited", [], { result: "terminated", message: "its containers have exited" }],
    ["run", ["app"], { result: "failed", message: "containers were not stopped, or were restarted: app" }],
  ])(
    "determines by its containers, at the deadline, whether a pod was stopped: they %s",
    async (_name, running, outcome) => {
      const test = setup(["web"], ["app"]);
      test.table.default = "containerStop";
      const now = test.clock.now();
      test.evictor.resume([pending("web", { since: now, acceptedAt: now, deadline: now + 20_000 })]);
      test.start();
      await test.clock.step(19_999);
      expect(test.outcomes()).toEqual([]);
      test.running = running;
      await test.clock.step(1);
      expect(test.outcome()).toMatchObject({ ...outcome, sent: true });
      expect(test.kills).toEqual([]);
    },
  );

  it("follows it to its end, with the deadline it had", async () => {
    const test = setup();
    test.terminate("web");
    const now = test.clock.now();
    test.evictor.resume([
      pending("web", { since: now - 10_000, acceptedAt: now - 10_000, deadline: now + 20_000 }),
    ]);
    test.start();
    await test.clock.step(19_999);
    expect(test.events).toEqual([]);
    expect(test.outcomes()).toEqual([]);
    await test.clock.step(1);
    expect(test.outcomes()).toEqual(["web overdue"]);
    test.remove("web");
    expect(test.outcomes()).toEqual(["web terminated"]);
    expect(test.kills).toEqual([]);
  });

  it.each([
    ["still terminating", (test: TestEvictor) => test.terminate("web"), "overdue"],
    ["deleted", () => {}, "terminated"],
  ])("records one that is past its deadline as what it is: %s", async (_name, arrange, result) => {
    const test = setup();
    arrange(test);
    test.evictor.resume([pending("web", { deadline: test.clock.now() - 3 * 86_400_000 })]);
    test.start();
    await test.clock.step(0);
    expect(test.outcomes()).toEqual([`web ${result}`]);
  });
});
