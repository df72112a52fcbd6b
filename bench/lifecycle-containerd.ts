import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stopped } from "@nodekeeper/core/lib";
import { Containerd } from "../test/e2e/support/containerd.ts";
import { CriClient } from "../test/e2e/support/cri-client.ts";
import { missingParts } from "../test/e2e/support/parts.ts";
import { type Figure, percentile } from "./figures.ts";
import { startLifecycle } from "./lifecycle-part.ts";

const NANOSECONDS = 1_000_000;

/** From the exit of a container in real containerd, by its own clock, to our event. Needs root and the end-to-end parts. */
export async function benchContainerd(quick: boolean): Promise<Figure[]> {
  if (process.getuid?.() !== 0 || missingParts("containerd", "runc", "busybox")) {
    console.error("no real containerd: run npm run test:e2e as root once, it prepares one");
    return [];
  }
  const directory = mkdtempSync(join(tmpdir(), "nkbench-"));
  const containerd = await Containerd.start(directory, "containerd");
  const cri = new CriClient(containerd);
  const part = startLifecycle(containerd.socket, {});
  const reading = new AbortController();
  const delays: number[] = [];
  const read = (async () => {
    for await (const item of part.lifecycle.events.read({}, reading.signal)) {
      if (item.kind !== "event" || item.event.type !== "ContainerDied") continue;
      const now = performance.timeOrigin + performance.now();
      const { status } = part.lifecycle.statuses.get(item.event.pod.uid);
      const container = status.containers.find(({ id }) => id === item.event.container?.id);
      if (container) delays.push(now - Number(container.finishedAt) / NANOSECONDS);
    }
  })();
  try {
    await part.relists(1);
    const sandbox = await cri.runPodSandbox({ uid: "bench", name: "bench", namespace: "default" });
    const count = quick ? 30 : 150;
    for (let at = 0; at < count; at++) {
      const id = await cri.runContainer(sandbox, { name: `c${at}`, command: ["/bin/sh", "-c", "exit 3"] });
      await part.until(() => delays.length > at);
      await cri.removeContainer(id);
    }
    return [
      {
        name: "real containerd: container's exit to our event, p50",
        value: percentile(delays, 0.5),
        unit: "ms",
      },
      { name: "the same, p99", value: percentile(delays, 0.99), unit: "ms", budget: 60 },
    ];
  } finally {
    reading.abort(stopped("done"));
    await read;
    await part.stop();
    cri.close();
    await containerd.stop();
    rmSync(directory, { recursive: true, force: true });
  }
}
