import { expect, it } from "vitest";
import { stopOnSignals, stopWithReader } from "./stop-on-signals.ts";

const counts = () => [...["SIGINT", "SIGTERM"].map((name) => process.listenerCount(name))];

it("aborts on a signal, and leaves no listener for one once it is released", () => {
  const before = counts();
  const scope = stopOnSignals();
  process.emit("SIGTERM", "SIGTERM");
  expect(scope.signal.reason).toMatchObject({ code: "stopped", message: "SIGTERM" });
  scope.release();
  expect(counts()).toEqual(before);
});

it("listens once for the end of its output, however often a process runs commands", () => {
  const before = process.stdout.listenerCount("error");
  for (let run = 0; run < 3; run++) {
    using scope = stopWithReader();
    expect(scope.signal.aborted).toBe(false);
  }
  expect(process.stdout.listenerCount("error")).toBeLessThanOrEqual(before + 1);
});
