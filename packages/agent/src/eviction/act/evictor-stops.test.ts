import { NodekeeperError } from "@nodekeeper/core/lib";
import { describe, expect, it } from "vitest";
import type { ContainerStatus } from "../../runtime/index.ts";
import { type TestEvictor, testEvictors, victim } from "../testing/evictor-setup.ts";
import { ContainerKiller } from "./container-killer.ts";

const setupEvictor = testEvictors();
const withdrawn = { uid: "web", namespace: "default", name: "web" };

/** The containers of one pod in a runtime, and an evictor that stops them. */
class StoppedPod {
  readonly states = new Map<string, ContainerStatus["state"]>();
  readonly stopCalls: string[] = [];
  readonly test: TestEvictor;
  /** Recorded stages of progress, oldest first. */
  readonly progress: string[] = [];
  onStop: (id: string) => Promise<void> = async (id) => void this.states.set(id, "exited");
  /** What a reading of the containers waits for. */
  onRead: (signal: AbortSignal | undefined) => Promise<void> = async () => {};

  constructor(...running: string[]) {
    for (const id of running) this.states.set(id, "running");
    this.test = setupEvictor(["web"], running, ({ clock, policy }) => [
      new ContainerKiller({
        runtime: {
          stopContainer: async (id) => {
            this.stopCalls.push(id);
            await this.onStop(id);
          },
        },
        statuses: {
          getNewerThan: async (_uid, _time, signal) => {
            await this.onRead(signal);
            return this.#entry();
          },
        },
        clock,
        policy: () => policy,
      }),
    ]);
    this.test.ledger.onProgress(({ stage }) => this.progress.push(stage) > 0);
    this.test.killer = "containerStop";
  }

  #entry() {
    const status = { uid: "web", name: "web", namespace: "default", ips: [], sandboxes: [] };
    const containers = [...this.states].map(
      ([id, state]) => ({ id, name: id, kind: "container", state }) as ContainerStatus,
    );
    return { status: { ...status, containers }, error: undefined, modifiedAt: 0, observedAt: 0 };
  }
}

describe("an eviction that stops containers", () => {
  it("ends once they have exited, and states that the pod stays", async () => {
    const pod = new StoppedPod("app", "helper");
    await pod.test.evict(victim("web"));
    expect(pod.test.outcome()).toMatchObject({
      result: "terminated",
      sent: true,
      stopsContainers: true,
      message: "stopped app, helper",
    });
    expect(pod.test.forgotten).toEqual([]);
    // The kubelet starts them again: that one runs does not mean that it outlasted its pod.
    expect(pod.test.awaited).toEqual([]);
  });

  it("of which none runs fails, so that another pod is tried, and the pod stays one of the node", async () => {
    const pod = new StoppedPod("app");
    pod.states.set("app", "exited");
    await pod.test.evict(victim("web"));
    expect(pod.test.outcome()).toMatchObject({
      result: "failed",
      sent: false,
      message: "no container of the pod was running",
    });
    expect(pod.test.forgotten).toEqual([]);
  });

  it("is recorded as sent only when StopContainer is called", async () => {
    const pod = new StoppedPod("app");
    const stages: string[][] = [];
    pod.onRead = async () => void stages.push([...pod.progress]);
    pod.onStop = async (id) => {
      stages.push([...pod.progress]);
      pod.states.set(id, "exited");
    };
    await pod.test.evict(victim("web"));
    expect(stages.slice(0, 2)).toEqual([[], ["sending"]]);
  });

  it("is not recorded as sent if the agent ends while it reads the containers", async () => {
    const pod = new StoppedPod("app");
    pod.onRead = (signal) =>
      new Promise((_resolve, reject) => signal?.addEventListener("abort", () => reject(signal.reason)));
    await pod.test.evict(victim("web"));
    await pod.test.stop();
    expect(pod.stopCalls).toEqual([]);
    expect(pod.progress).toEqual([]);
  });

  it.each([
    [
      "is withdrawn",
      (test: TestEvictor) =>
        test.evictor.withdraw([{ ...withdrawn, stage: "started", reason: "memory 0.7 <= threshold 0.8" }]),
      { result: "withdrawn", sent: false, message: "memory 0.7 <= threshold 0.8" },
    ],
    [
      "ends with its pod",
      (test: TestEvictor) => test.remove("web"),
      { result: "superseded", sent: false, message: "pod deleted before its eviction was sent" },
    ],
  ])("that %s while it reads the containers stops none of them", async (_name, act, outcome) => {
    const pod = new StoppedPod("app");
    const { promise, resolve } = Promise.withResolvers<void>();
    pod.onRead = () => promise;
    await pod.test.evict(victim("web"));
    act(pod.test);
    resolve();
    await pod.test.clock.step(0);
    expect(pod.stopCalls).toEqual([]);
    expect(pod.progress).toEqual([]);
    expect(pod.test.outcome()).toMatchObject(outcome);
  });

  it("that can't be recorded stops none, and is tried again", async () => {
    const pod = new StoppedPod("app");
    let isKept = false;
    pod.test.ledger.onProgress(() => isKept);
    await pod.test.evict(victim("web"));
    expect(pod.stopCalls).toEqual([]);
    expect(pod.test.steps().join()).toContain("not sent: neither the state directory nor");
    isKept = true;
    await pod.test.clock.step(60_000);
    expect(pod.stopCalls).toEqual(["app"]);
    expect(pod.test.outcome()).toMatchObject({ result: "terminated", sent: true });
  });

  it("that did not reach the runtime is not stated to have been sent, if the pod ends before a retry", async () => {
    const pod = new StoppedPod("app");
    pod.onStop = () =>
      Promise.reject(new NodekeeperError("unavailable", "14 UNAVAILABLE: No connection established"));
    await pod.test.evict(victim("web"));
    pod.test.remove("web");
    await pod.test.clock.step(60_000);
    expect(pod.test.outcome()).toMatchObject({ result: "superseded", sent: false });
  });

  it.each([
    ["did not reach the runtime", "14 UNAVAILABLE: No connection established", false],
    ["may have reached the runtime", "14 UNAVAILABLE: Connection dropped", true],
  ])(
    "that is withdrawn while containers are stopped is not sent again if the call fails, and %s",
    async (_name, message, sent) => {
      const pod = new StoppedPod("app");
      const { promise, reject } = Promise.withResolvers<void>();
      pod.onStop = () => promise;
      await pod.test.evict(victim("web"));
      pod.test.evictor.withdraw([{ ...withdrawn, stage: "started", reason: "memory 0.7 <= threshold 0.8" }]);
      reject(new NodekeeperError("unavailable", message));
      await pod.test.clock.step(60_000);
      expect(pod.stopCalls).toEqual(["app"]);
      expect(pod.test.outcome()).toMatchObject({
        result: "withdrawn",
        sent,
        message: "memory 0.7 <= threshold 0.8",
      });
    },
  );

  it("that is withdrawn during its last attempt is withdrawn, not failed, and announces no retry", async () => {
    const pod = new StoppedPod("app");
    let attempts = 0;
    pod.onStop = async () => {
      if (++attempts === 3)
        pod.test.evictor.withdraw([
          { ...withdrawn, stage: "started", reason: "memory 0.7 <= threshold 0.8" },
        ]);
      throw new NodekeeperError("invalid", "no such container");
    };
    await pod.test.evict(victim("web"));
    await pod.test.clock.step(60_000);
    expect(pod.test.outcome()).toMatchObject({ result: "withdrawn", message: "memory 0.7 <= threshold 0.8" });
    expect(pod.test.steps().at(-1)).not.toContain("retry in");
    expect(attempts).toBe(3);
  });

  it("that is withdrawn while containers are stopped ends as evicted if the call succeeds", async () => {
    const pod = new StoppedPod("app");
    const { promise, resolve } = Promise.withResolvers<void>();
    pod.onStop = async (id) => {
      await promise;
      pod.states.set(id, "exited");
    };
    await pod.test.evict(victim("web"));
    pod.test.evictor.withdraw([{ ...withdrawn, stage: "started", reason: "memory 0.7 <= threshold 0.8" }]);
    resolve();
    await pod.test.clock.step(1_000);
    expect(pod.test.outcome()).toMatchObject({ result: "terminated", sent: true, message: "stopped app" });
  });

  it("that is withdrawn while it reads containers that have exited is withdrawn", async () => {
    const pod = new StoppedPod("app");
    const { promise, resolve } = Promise.withResolvers<void>();
    pod.onRead = () => promise;
    await pod.test.evict(victim("web"));
    pod.test.evictor.withdraw([{ ...withdrawn, stage: "started", reason: "memory 0.7 <= threshold 0.8" }]);
    pod.states.set("app", "exited");
    resolve();
    await pod.test.clock.step(0);
    expect(pod.test.outcome()).toMatchObject({ result: "withdrawn", sent: false });
  });

  it("of which none runs is no failure of the killer, however often", async () => {
    const pod = new StoppedPod("app");
    pod.states.set("app", "exited");
    for (let count = 0; count < 4; count++) await pod.test.evict(victim("web"));
    expect(pod.test.evictor.healthCheck().check()).toMatchObject({ ok: true });
  });
});
