import { expect, it } from "vitest";
import type { HintedExit, ListedContainer } from "../runtime/index.ts";
import type { Transition } from "./diff.ts";
import { podEvents } from "./pod-events.ts";
import { PodRecords } from "./records.ts";

const container: ListedContainer = {
  id: "a1",
  name: "app",
  attempt: 0,
  kind: "container",
  state: "exited",
  createdAt: 1n,
};
const died: Transition = { type: "ContainerDied", container };
const removed: Transition = { type: "ContainerRemoved", container };

it.each<[string, Transition[], (number | undefined)[], string[]]>([
  ["keeps a reported exit while the container is listed", [died], [42], ["a1"]],
  ["forgets it when the container is removed", [died, removed], [42, undefined], []],
])("%s", (_, transitions, exitCodes, kept) => {
  const pod = { uid: "a", namespace: "default", name: "pod-a", containers: [container], sandboxes: [] };
  const exits = new Map<string, HintedExit>([["a1", { containerId: "a1", exitCode: 42, reason: "Error" }]]);
  const hints = { exitOf: (id: string) => exits.get(id), removed: (id: string) => void exits.delete(id) };
  const events = podEvents(new PodRecords().open(pod), transitions, undefined, hints);
  expect(events.map(({ exitCode }) => exitCode)).toEqual(exitCodes);
  expect([...exits.keys()]).toEqual(kept);
});
