import type { EventInput } from "@nodekeeper/core/kube";
import { Registry, silentLogger } from "@nodekeeper/core/lib";
import { expect, it } from "vitest";
import { createEvictionMetrics } from "../metrics.ts";
import { OomEvents } from "./oom-events.ts";

it.each([
  ["64Mi", 62_914_560, " Memory limit: 64Mi. Last known memory usage of the pod: 60Mi."],
  [null, undefined, " It has no memory limit."],
  [undefined, undefined, ""],
])(
  "states the limit %s and the usage %s in its Event, each only if it is known",
  (limit, usageBytes, stated) => {
    const recorded: string[] = [];
    const events = { record: ({ message }: EventInput) => void recorded.push(message) };
    const metrics = createEvictionMetrics(new Registry());
    const report = new OomEvents({ events: events as never, metrics, log: silentLogger });
    const exit = { id: "c", name: "app", exitCode: 137, reason: "OOMKilled", at: 0 };
    report.report({ pod: { uid: "u", namespace: "default", name: "web" }, exit, limit, usageBytes });
    expect(recorded).toEqual([`Container app was OOM-killed (exit code 137).${stated}`]);
  },
);
