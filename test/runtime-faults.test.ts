import { eventually } from "@nodekeeper/testing/until";
import { describe, expect, it } from "vitest";
import { startLifecycle } from "./support/lifecycle.ts";

describe("a runtime that", () => {
  it("hangs in the status of one pod: that pod is stale, the others are emitted, and it is when it answers", async () => {
    await using setup = await startLifecycle({
      client: { requestTimeout: 1_000 },
      lifecycle: { inspectionPatience: 150 },
    });
    const { runtime, cri, start, pod, told, health, lifecycle } = setup;
    const [stuck, well] = [pod("stuck"), pod("well")];
    await start();
    cri.faults = ({ podUid, method }) =>
      podUid === "stuck" && method === "ContainerStatus" ? { hang: true } : undefined;
    runtime.exit(stuck.id, 1);
    runtime.exit(well.id, 2);
    await eventually(() => expect(told()).toEqual(["Died well"]));
    await eventually(() => expect(lifecycle.statuses.get("stuck").error?.message).toMatch(/no response/));
    await eventually(() =>
      expect(health()).toMatchObject({ ok: true, message: expect.stringMatching(/1 /) }),
    );
    cri.faults = () => undefined;
    await eventually(() => expect(told()).toEqual(["Died well", "Died stuck"]));
    await eventually(() => expect(lifecycle.statuses.get("stuck").error).toBeUndefined());
  });

  it("hangs in a list: health names which call and for how long, and recovers", async () => {
    await using setup = await startLifecycle({
      client: { requestTimeout: 1_000 },
      lifecycle: { unhealthyAfter: 500 },
    });
    const { runtime, cri, start, pod, told, health } = setup;
    const { id } = pod("a");
    await start();
    cri.faults = ({ method }) => (method === "ListContainers" ? { hang: true } : undefined);
    runtime.exit(id, 1);
    await eventually(() => expect(health()).toMatchObject({ ok: false, message: /ListContainers/ }));
    cri.faults = () => undefined;
    await eventually(() => expect(told()).toEqual(["Died a"]));
    await eventually(() => expect(health().ok).toBe(true));
  });

  it.each([
    ["garbage", Buffer.from([0x0a, 0xff, 0xff, 0xff, 0x01, 0x00]), /ListContainers/],
    ["20 MiB", Buffer.alloc(20 * 2 ** 20), /ListContainers.*limit/],
    ["nothing at all, as one that has just come up", undefined, undefined],
  ])("answers a list with %s: nothing wrong is taken over", async (_name, bytes, message) => {
    await using setup = await startLifecycle({ lifecycle: { unhealthyAfter: 300 } });
    const { runtime, cri, start, pod, told, health } = setup;
    const { id } = pod("a");
    await start();
    if (bytes) {
      cri.faults = ({ method }) => (method === "ListContainers" ? { bytes } : undefined);
      await eventually(() => expect(health()).toMatchObject({ ok: false, message }));
    } else {
      let lies = 1;
      cri.faults = ({ method }) =>
        method === "ListContainers" && lies-- > 0 ? { bytes: Buffer.alloc(0) } : undefined;
      await eventually(() => expect(lies).toBeLessThan(0));
    }
    expect(told()).toEqual([]);
    cri.faults = () => undefined;
    runtime.exit(id, 1);
    await eventually(() => expect(told()).toEqual(["Died a"]));
  });

  it.each([{ lost: 0.5 }, { doubled: 1 }, { reordered: 0.5 }, { replayed: 500 }])(
    "garbles its events (%o): each change is told once",
    async (eventFaults) => {
      await using setup = await startLifecycle({
        cri: { events: "on", eventFaults },
        lifecycle: { eventedRelistPeriod: 300, hintGraceMs: 50 },
      });
      const { runtime, start, pod, told } = setup;
      const pods = Array.from({ length: 20 }, (_, at) => pod(`p${at}`));
      const last = pod("last");
      await start();
      for (const [at, { id }] of pods.entries()) runtime.exit(id, at);
      await eventually(() => expect(told()).toHaveLength(20));
      // What comes after shows that nothing more was to come of these.
      runtime.exit(last.id, 0);
      await eventually(() => expect(told()).toContain("Died last"));
      expect(told()).toHaveLength(21);
      expect(new Set(told()).size).toBe(21);
    },
  );

  it("removes a container as soon as it has exited: its exit code is that of the runtime's event", async () => {
    await using setup = await startLifecycle({
      cri: { events: "on" },
      lifecycle: { relistPeriod: 60_000 },
    });
    const { runtime, cri, start, pod, lifecycle } = setup;
    const { id } = pod("a");
    await start();
    await eventually(() => expect(cri.listeners).toBe(1));
    runtime.exit(id, 42, "OOMKilled");
    runtime.removeContainer(id);
    await eventually(() => expect(lifecycle.events.last).toBe(2));
    expect(lifecycle.events.get(1)).toMatchObject({
      type: "ContainerDied",
      exitCode: 42,
      reason: "OOMKilled",
    });
    expect(lifecycle.events.get(2)).toMatchObject({ type: "ContainerRemoved" });
  });

  it("restarts with and without events, and changes what it can: no restart of ours is needed", async () => {
    await using setup = await startLifecycle({ cri: { events: "on" } });
    const { runtime, cri, start, pod, told } = setup;
    const { id, sandbox } = pod("a");
    await start();
    await eventually(() => expect(cri.listeners).toBe(1));
    await cri.restart(() => {
      runtime.exit(id, 1);
      cri.events = "unimplemented";
    });
    await eventually(() => expect(told()).toEqual(["Died a"]));
    await cri.restart(() => {
      cri.events = "on";
    });
    await eventually(() => expect(cri.listeners).toBe(1));
    runtime.runContainer(sandbox, { name: "app", attempt: 1 });
    await eventually(() => expect(told()).toEqual(["Died a", "Started a"]));
  });
});
