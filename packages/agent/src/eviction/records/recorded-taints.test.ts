import { expect, it } from "vitest";
import { addedTaints } from "./recorded-taints.ts";

const hot = "nodekeeper.dev/Hot:NoSchedule";
it.each<[string, string[], [string, number][]]>([
  ["added", [`taint ${hot} added: p reports x 1 > threshold 0`], [[hot, 1]]],
  ["added without a reason", [`taint ${hot} added`], [[hot, 1]]],
  ["removed", [`taint ${hot} added`, `taint ${hot} removed: no longer reported`], []],
  ["removed by another client", [`taint ${hot} added`, `taint ${hot} removed by kubectl-taint (Update)`], []],
  [
    "restored",
    [`taint ${hot} added`, `taint ${hot} removed by x`, `taint ${hot} restored after its removal by x`],
    [[hot, 3]],
  ],
  ["added again", [`taint ${hot} added`, `taint ${hot} removed: x`, `taint ${hot} added: x`], [[hot, 3]]],
  ["a condition", [`condition Hot set: p reports taint ${hot} added`], []],
])("%s", (_, messages, expected) => {
  const events = messages.map((message, index) => ({ at: index + 1, message }));
  expect([...addedTaints(events)]).toEqual(expected);
});
