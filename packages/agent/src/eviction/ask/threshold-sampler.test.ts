import { FakeClock, Registry, silentLogger } from "@nodekeeper/core/lib";
import { expect, it } from "vitest";
import { defaultEvictionSettings } from "../../assembly/testing/defaults.ts";
import { Host, type HostSample } from "../../host/index.ts";
import { createEvictionMetrics } from "../metrics.ts";
import type { RoundRequest } from "../round-pacing.ts";
import { sourceOf } from "../testing/manager-setup.ts";
import { EvictionPlugins } from "./plugins.ts";
import { SAMPLE_PERIOD_MS, ThresholdSampler } from "./threshold-sampler.ts";

/** A sampler over one plugin; `sampleMs` is how long one sample takes. */
function setUp(sampleMs = 0) {
  const clock = new FakeClock();
  const state = { crossed: [] as string[], samples: 0, outOfTurnRounds: true };
  const crossed = (_: HostSample) => {
    state.samples++;
    return state.crossed;
  };
  const plugins = new EvictionPlugins({
    inTree: [sourceOf("sampled", { crossed }), sourceOf("other")],
    settings: () => defaultEvictionSettings,
    tokenCheck: () => undefined,
    clock,
    log: silentLogger,
    metrics: createEvictionMetrics(new Registry()),
  });
  const requests: RoundRequest[] = [];
  let elapsed = 0;
  const sampler = new ThresholdSampler({
    host: new Host({ clock }),
    plugins,
    pacing: { request: (request) => requests.push(request) },
    settings: () => state,
    // Time passes while a sample is taken.
    clock: {
      ...clock,
      now: () => clock.now(),
      after: (ms, callback) => clock.after(ms, callback),
      sleep: (ms, signal) => clock.sleep(ms, signal),
      monotonic: () => clock.monotonic() + (elapsed++ % 2) * sampleMs,
    },
  });
  const stop = new AbortController();
  const running = sampler.run(stop.signal);
  const end = async () => {
    stop.abort();
    await running;
  };
  return { clock, state, requests, end };
}

it("requests a round when a threshold is crossed, and no other while it stays so", async () => {
  const { clock, state, requests, end } = setUp();
  await clock.step(1_000);
  expect(requests).toEqual([]);
  state.crossed = ["free memory"];
  await clock.step(2_000);
  expect(requests).toEqual([{ plugin: "sampled", reason: "crossed: free memory" }]);
  state.crossed = ["free memory", "stalls"];
  await clock.step(1_000);
  expect(requests.slice(1)).toEqual([{ plugin: "sampled", reason: "crossed: stalls" }]);
  state.crossed = [];
  await clock.step(1_000);
  state.crossed = ["stalls"];
  await clock.step(1_000);
  expect(requests).toHaveLength(3);
  await end();
});

it("leaves out a plugin whose sampling throws", async () => {
  const { clock, state, requests, end } = setUp();
  Object.defineProperty(state, "crossed", {
    get: () => {
      throw new Error("a defect");
    },
  });
  await clock.step(2_000);
  // Once as the sampler started, and once since.
  expect(state.samples).toBe(2);
  expect(requests).toEqual([]);
  await end();
});

it("samples four times a second, and not at all where rounds out of turn are off", async () => {
  const { clock, state, end } = setUp();
  await clock.step(SAMPLE_PERIOD_MS * 40);
  expect(state.samples).toBe(41);
  state.outOfTurnRounds = false;
  await clock.step(10_000);
  expect(state.samples).toBe(41);
  await end();
});

it.each([
  [0.4, 250],
  [1, 500],
  [3, 1_500],
  [50, 2_000],
])(
  "a sample that takes %f ms is taken each %i ms: at most 0.2 percent of a core",
  async (sampleMs, periodMs) => {
    const { clock, state, end } = setUp(sampleMs);
    await clock.step(0);
    await clock.step(periodMs * 10);
    expect(state.samples).toBe(11);
    await end();
  },
);
