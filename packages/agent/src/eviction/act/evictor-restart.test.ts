import { describe, expect, it } from "vitest";
import { pending, type TestEvictor, testEvictors, unavailable } from "../testing/evictor-setup.ts";

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
    [
      "exited",
      [],
      {
        result: "unknown",
        message:
          "its containers have exited; no result of StopContainer was recorded before the agent restarted",
      },
    ],
    ["run", ["app"], { result: "failed", message: "containers were not stopped, or were restarted: app" }],
  ])(
    "determines by its containers, at the deadline, whether a pod was stopped: they %s",
    async (_name, running, outcome) => {
      const test = setup(["web"], ["app"]);
      const now = test.clock.now();
      const times = { since: now, acceptedAt: now, deadline: now + 20_000 };
      test.evictor.resume([pending("web", { ...times, stopsContainers: true })]);
      test.start();
      await test.clock.step(19_999);
      expect(test.outcomes()).toEqual([]);
      test.running = running;
      await test.clock.step(1);
      expect(test.outcome()).toMatchObject({ ...outcome, sent: true });
      expect(test.kills).toEqual([]);
    },
  );

  it("is ready, whatever became of the containers that the one before it may have stopped", async () => {
    const names = ["web", "db", "idle"];
    const test = setup(names, ["app"]);
    const times = { acceptedAt: test.clock.now(), deadline: test.clock.now() };
    test.evictor.resume(names.map((name) => pending(name, { ...times, stopsContainers: true })));
    test.start();
    await test.clock.step(0);
    expect(test.outcomes()).toEqual(names.map((name) => `${name} failed`));
    expect(test.evictor.healthCheck().check()).toMatchObject({ ok: true });
  });

  it("finds the end of a pod that was deleted before the first list, long before its deadline", async () => {
    const test = setup();
    test.isSynced = false;
    test.terminate("web");
    const now = test.clock.now();
    test.evictor.resume([pending("web", { since: now, acceptedAt: now, deadline: now + 90_000 })]);
    test.start();
    await test.clock.step(0);
    expect(test.outcomes()).toEqual([]);
    // The watch does not report it: it never knew the pod.
    test.pods.delete("web");
    test.isSynced = true;
    await test.clock.step(1_000);
    expect(test.outcomes()).toEqual(["web terminated"]);
  });

  it.each([
    ["accepted and overdue", { isOverdue: true }, "web terminated"],
    ["not accepted", { acceptedAt: null, sendingAt: null }, "web superseded"],
  ])(
    "finds the end of a pod that was deleted before the first list, long after its deadline: %s",
    async (_name, eviction, outcome) => {
      const test = setup();
      test.isSynced = false;
      test.terminate("web");
      const now = test.clock.now();
      const times = { since: now - 90_000, acceptedAt: now - 90_000, deadline: now - 1 };
      test.evictor.resume([pending("web", { ...times, ...eviction })]);
      test.start();
      await test.clock.step(0);
      test.pods.delete("web");
      test.isSynced = true;
      await test.clock.step(10_000);
      expect(test.outcomes()).toEqual([outcome]);
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

  it("states no end time of a pod that had ended before it was read: that may be hours before", async () => {
    const test = setup();
    test.terminate("db");
    const times = { since: test.clock.now(), acceptedAt: test.clock.now() - 7_200_000 };
    test.evictor.resume([pending("web", times), pending("db", times)]);
    test.start();
    await test.clock.step(0);
    test.remove("db");
    const [web, db] = test.ledger.takeOutcomes().filter(({ result }) => result === "terminated");
    expect(web).toMatchObject({ name: "web", acceptedAt: times.acceptedAt });
    expect(web).not.toHaveProperty("endedAt");
    expect(db).toMatchObject({ name: "db", endedAt: test.clock.now() });
  });

  it("does not state that one was withdrawn which it follows", async () => {
    const test = setup();
    test.terminate("web");
    test.evictor.resume([pending("web", { acceptedAt: null })]);
    test.evictor.withdraw([
      { uid: "web", namespace: "default", name: "web", stage: "started", reason: "no longer requested" },
    ]);
    test.start();
    await test.clock.step(0);
    const steps = test.ledger.takeSteps().map(({ message }) => message);
    expect(steps.filter((message) => message.startsWith("withdrawn"))).toEqual([]);
  });

  // Otherwise the timeline would end with an earlier eviction of the pod. Seed 2577.
  it.each([
    [true, ["withdrawn, not known whether evicted by Nodekeeper: no response was recorded"]],
    [false, []],
  ])("marks one that was withdrawn if a request may have been accepted: %s", (sent, marked) => {
    const test = setup();
    const { uid, namespace, name, ...rest } = pending("web");
    test.evictor.reportInterrupted(
      { uid, namespace, name, ...rest },
      { uid, namespace, name, result: "withdrawn", sent, message: "no response was recorded", budget: null },
    );
    expect(test.ended).toEqual(marked);
  });

  it("reports one that is overdue once, whatever how often it restarts", async () => {
    const test = setup();
    test.terminate("web");
    test.evictor.resume([pending("web", { deadline: test.clock.now() - 1, isOverdue: true })]);
    test.start();
    await test.clock.step(600_000);
    expect(test.outcomes()).toEqual([]);
    test.remove("web");
    expect(test.outcomes()).toEqual(["web terminated"]);
  });

  it.each([
    [
      "sent",
      { sendingAt: null },
      "superseded",
      "pod deleted; it was terminating before its eviction was sent",
    ],
    [
      "accepted",
      {},
      "unknown",
      "pod deleted; no response to a request was recorded before the agent restarted",
    ],
  ])(
    "follows a terminating pod whose eviction is not known to be %s",
    async (_name, changes, result, message) => {
      const test = setup();
      test.terminate("web");
      const progress: unknown[] = [];
      test.ledger.onProgress((step) => progress.push(step) > 0);
      test.evictor.resume([pending("web", { acceptedAt: null, deadline: test.clock.now() + 9, ...changes })]);
      test.start();
      await test.clock.step(600_000);
      expect(test.outcomes()).toEqual([]);
      test.remove("web");
      expect(test.ledger.takeOutcomes()).toMatchObject([{ result, message }]);
      expect(progress).toMatchObject([{ stage: "followed" }]);
      expect(test.events).toEqual([]);
    },
  );

  it("records the end of one whose pod can't be read at first, as while the API server is unavailable", async () => {
    const test = setup();
    test.onRead = () => Promise.reject(unavailable);
    test.evictor.resume([pending("web")]);
    test.start();
    await test.clock.step(600_000);
    expect(test.outcomes()).toEqual([]);
    test.onRead = () => undefined;
    await test.clock.step(10_000);
    expect(test.outcomes()).toEqual(["web terminated"]);
  });
});
