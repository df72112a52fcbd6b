import { expect, it } from "vitest";
import { eventsOf } from "./events-of.ts";

const event = (sequence: number, uid = "1") => ({
  ...{ sequence, type: "ContainerDied" as const, at: sequence, reason: "" },
  pod: { uid, namespace: "default", name: "web" },
});
const item = (sequence: number, uid?: string) => ({
  kind: "event" as const,
  cursor: `log-${sequence}`,
  event: event(sequence, uid),
});

it("has each event of the log and of the stream once, in order", () => {
  const logged = [{ kind: "snapshot" as const, cursor: "log-0", pods: [] }, item(2), item(4), item(5, "2")];
  const live = [event(4), event(3), event(6), event(7, "2")];
  expect(eventsOf("1", logged, live).map(({ sequence }) => sequence)).toEqual([2, 3, 4, 6]);
});
