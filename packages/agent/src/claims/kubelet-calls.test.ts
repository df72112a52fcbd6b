import { FakeClock, Registry, silentLogger } from "@nodekeeper/core/lib";
import { expect, it } from "vitest";
import type { KubeletCall } from "./context.ts";
import type { DriverReturn } from "./driver-return.ts";
import type { DriverStates } from "./driver-state.ts";
import { KubeletCalls } from "./kubelet-calls.ts";
import { createClaimMetrics } from "./metrics.ts";
import type { Preparation } from "./preparation.ts";

const never = new AbortController().signal;
const claim = { namespace: "default", name: "claim", uid: "uid" };

function callsTo(preparation: Partial<Preparation>) {
  const clock = new FakeClock();
  // The driver returns after 20 s.
  const driverReturn: Pick<DriverReturn, "run"> = {
    run: async (_driver, _claim, work, { signal }) => {
      await clock.sleep(20_000, signal);
      return await work();
    },
  };
  const calls = new KubeletCalls({
    drivers: {} as DriverStates,
    preparation: preparation as Preparation,
    driverReturn,
    metrics: createClaimMetrics(new Registry(), { records: { all: () => [] }, drivers: { list: () => [] } }),
    stop: never,
    clock,
    log: silentLogger,
  });
  return { clock, calls };
}

it("all waits of one prepare have 40 s together, less than the kubelet waits for the answer", async () => {
  const seen: number[] = [];
  const { clock, calls } = callsTo({
    prepare: async (_driver, _claim, _stop, call?: KubeletCall) => {
      seen.push(call!.waitUntil - clock.monotonic());
      return [];
    },
  });
  const preparing = calls.prepare("gpu.example.com", claim, never);
  await clock.step(20_000);
  await preparing;
  expect(seen).toEqual([20_000]);
});

it("a prepare that is under way ends when the claim is unprepared", async () => {
  const { calls } = callsTo({ unprepare: async () => {} });
  const preparing = calls.prepare("gpu.example.com", claim, never);
  await calls.unprepare("gpu.example.com", claim, never);
  await expect(preparing).rejects.toThrow("called to unprepare the claim");
});
