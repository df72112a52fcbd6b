import { FakeClock } from "@nodekeeper/core/lib";
import { expect, it } from "vitest";
import { RelistPacing } from "./pacing.ts";
import { completeLifecycleSettings } from "./settings.ts";

/** A pause between relists of a runtime whose events are reliable; `left` is how often pods must still be read. */
function setUp() {
  const clock = new FakeClock();
  const settings = completeLifecycleSettings({ relistPeriod: 1_000, eventedRelistPeriod: 60_000 });
  const pacing = new RelistPacing({ clock, settings });
  pacing.trust(true);
  const state = { left: 0, reads: [] as number[], endedAt: undefined as number | undefined };
  const startedAt = clock.monotonic();
  const onShort = () => {
    state.reads.push(clock.monotonic() - startedAt);
    state.left--;
    return state.left > 0;
  };
  const pause = async () => {
    await pacing.pause(onShort, new AbortController().signal);
    state.endedAt = clock.monotonic() - startedAt;
  };
  return { clock, pacing, state, pause };
}

it("sleeps for the whole period if no pod must be read again", async () => {
  const { clock, state, pause } = setUp();
  void pause();
  await clock.step(59_000);
  expect(clock.timers).toBe(1);
  expect(state).toMatchObject({ reads: [], endedAt: undefined });
  await clock.step(1_000);
  expect(state.endedAt).toBe(60_000);
});

it("reads pods again every short period until none is left", async () => {
  const { clock, pacing, state, pause } = setUp();
  void pause();
  await clock.step(10_000);
  state.left = 3;
  pacing.retry();
  pacing.retry();
  await clock.step(20_000);
  expect(state.reads).toEqual([11_000, 12_000, 13_000]);
  state.left = 1;
  pacing.retry();
  await clock.step(10_000);
  expect(state.reads).toEqual([11_000, 12_000, 13_000, 31_000]);
});

it("reads a pod again that failed in the relist itself", async () => {
  const { clock, pacing, state, pause } = setUp();
  pacing.retry();
  await clock.step(5_000);
  void pause();
  await clock.step(3_000);
  expect(state.reads).toEqual([6_000]);
});

it("ends early if hints turn out not to be reliable", async () => {
  const { clock, pacing, state, pause } = setUp();
  void pause();
  await clock.step(20_000);
  pacing.trust(false);
  await clock.step(0);
  expect(state.endedAt).toBe(20_000);
});

it("ends early if the period becomes shorter, not later if it grows", async () => {
  const { clock, pacing, state, pause } = setUp();
  pacing.quiet(clock.monotonic() - 50_000);
  void pause();
  await clock.step(4_999);
  expect(clock.timers).toBe(1);
  await clock.step(1);
  expect(state.endedAt).toBe(5_000);
  void pause();
  await clock.step(2_000);
  pacing.soon();
  await clock.step(0);
  expect(state.endedAt).toBe(7_000);
});
