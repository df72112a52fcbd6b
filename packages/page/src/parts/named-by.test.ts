import { expect, it } from "vitest";
import { namedBy } from "./named-by.ts";

const pod = (uid: string) => ({ uid, namespace: "default", name: uid });
const answers = (...uids: string[]) => ({
  answer: { pods: uids.map(pod), gracePeriodSeconds: null },
});

it("has each plugin that named the pod, with its place in the plugin's answer", () => {
  const input = {
    tops: [
      { plugin: "memory", top: answers("a", "b", "c") },
      { plugin: "broken", top: { failure: "no answer" } },
      { plugin: "cpu", top: answers("b") },
      { plugin: "disk", top: answers() },
    ],
    plugins: [
      {
        plugin: "force",
        evictPods: {
          answer: {
            pods: [{ pod: pod("b"), reason: "", force: true, gracePeriodSeconds: null }],
            condition: null,
          },
        },
        threshold: { failure: "not implemented" },
      },
    ],
  };
  const record = { input } as unknown as Parameters<typeof namedBy>[0];
  expect(namedBy(record, "b")).toEqual([
    "named as number 2 of 3 by memory",
    "named by cpu",
    "named by force",
  ]);
  expect(namedBy(record, "d")).toEqual([]);
});
