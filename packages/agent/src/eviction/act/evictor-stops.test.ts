import { describe, expect, it } from "vitest";
import type { ContainerStatus } from "../../runtime/index.ts";
import { type TestEvictor, testEvictors, victim } from "../testing/evictor-setup.ts";
import { ContainerKiller } from "./container-killer.ts";

const setupEvictor = testEvictors();

/** The containers of one pod in a runtime, and an evictor that stops them. */
class StoppedPod {
  readonly states = new Map<string, ContainerStatus["state"]>();
  readonly stopCalls: string[] = [];
  readonly test: TestEvictor;
  onStop: (id: string) => Promise<void> = async (id) => void this.states.set(id, "exited");

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
        statuses: { getNewerThan: async () => this.#entry() },
        clock,
        policy: () => policy,
      }),
    ]);
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

  it("of which none runs is no failure of the killer, however often", async () => {
    const pod = new StoppedPod("app");
    pod.states.set("app", "exited");
    for (let count = 0; count < 4; count++) await pod.test.evict(victim("web"));
    expect(pod.test.evictor.healthCheck().check()).toMatchObject({ ok: true });
  });
});
