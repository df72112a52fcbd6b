import { systemClock } from "@nodekeeper/core/lib";
import { eventually } from "@nodekeeper/testing/until";
import { describe, expect, it } from "vitest";
import { startLifecycle } from "../support/lifecycle.ts";
import { sized } from "../support/sizes.ts";

describe("a runtime that", () => {
  it(`has ${sized(1_000, 10_000)} containers: a change among them is found`, async () => {
    await using setup = await startLifecycle({
      lifecycle: { relistPeriod: 200, inspectionPatience: 5_000 },
    });
    const { runtime, start, pod, told } = setup;
    const ids: string[] = [];
    for (let at = 0; at < sized(100, 1_000); at++) {
      const { sandbox } = pod(`p${at}`);
      for (let more = 0; more < 9; more++) ids.push(runtime.runContainer(sandbox, { name: `c${more}` }));
    }
    await start();
    runtime.exit(ids[500]!, 9);
    await eventually(() => expect(told()).toEqual(["Died p55"]));
  });

  it(`tells ${sized(1_000, 5_000)} events a second: each change once, and the pods are still listed`, async () => {
    await using setup = await startLifecycle({ cri: { events: "on" } });
    const { runtime, cri, start, pod, told, health, lifecycle } = setup;
    const pods = Array.from({ length: 50 }, (_, at) => ({ uid: `p${at}`, ...pod(`p${at}`) }));
    await start();
    await eventually(() => expect(cri.listeners).toBe(1));
    const noisy = pods[0]!;
    for (let second = 0; second < sized(1, 2); second++) {
      for (let burst = 0; burst < 50; burst++) {
        // Most of the events are of containers that come and go between two looks.
        for (let at = 0; at < sized(5, 25); at++) {
          const id = runtime.createContainer(noisy.sandbox, { name: `short-${at}` });
          runtime.startContainer(id);
          runtime.exit(id, 0);
          runtime.removeContainer(id);
        }
        await systemClock.sleep(20);
      }
    }
    for (const { id } of pods) runtime.exit(id, 3);
    const died = () => told().filter((word) => word.startsWith("Died"));
    await eventually(() => expect(pods.filter(({ uid }) => !died().includes(`Died ${uid}`))).toEqual([]));
    for (const { uid } of pods.slice(1))
      expect(told().filter((word) => word === `Died ${uid}`)).toHaveLength(1);
    await eventually(() => expect(health().ok).toBe(true));
    expect(lifecycle.events.last).toBeLessThan(10_000);
  });
});
