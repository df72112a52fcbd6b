import { FakeClock } from "@nodekeeper/core/lib";
import { expect, it } from "vitest";
import { DriverSync } from "./driver-sync.ts";

const SLICES = 4;

function syncOn(clock: FakeClock): DriverSync {
  return new DriverSync(clock, () => 0.5);
}

// The kubelet deletes the node's slices when it starts, one after another.
async function wipe(sync: DriverSync, clock: FakeClock) {
  const repairs = [];
  for (let slice = 0; slice < SLICES; slice++) {
    repairs.push(sync.repair(clock.monotonic()));
    await clock.step(5);
  }
  return repairs;
}

it("all slices deleted at once are one repair, within half a second, at the tenth restart of the kubelet too", async () => {
  const clock = new FakeClock();
  const sync = syncOn(clock);
  for (let restart = 0; restart < 10; restart++) {
    const repairs = await wipe(sync, clock);
    expect(repairs.filter(({ isNew }) => isNew)).toHaveLength(1);
    for (const { delayMs } of repairs) expect(delayMs).toBeLessThan(500);
    await clock.step(5_000);
  }
});

it("three restarts in a row are no war", async () => {
  const clock = new FakeClock();
  const sync = syncOn(clock);
  for (let restart = 0; restart < 3; restart++) {
    for (const { delayMs } of await wipe(sync, clock)) expect(delayMs).toBeLessThan(500);
    await clock.step(500);
  }
});

it("changes while a repair waits are made with it", async () => {
  const clock = new FakeClock();
  const sync = syncOn(clock);
  let repair = sync.repair(clock.monotonic());
  while (repair.delayMs < 1_000) {
    await clock.step(250 + repair.delayMs);
    repair = sync.repair(clock.monotonic());
  }
  await clock.step(400);
  expect(sync.repair(clock.monotonic())).toEqual({ isNew: false, delayMs: repair.delayMs - 400 });
});

it("a client that undoes every repair at once is answered ever more slowly", async () => {
  const clock = new FakeClock();
  const sync = syncOn(clock);
  let repairs = 0;
  const endsAt = clock.monotonic() + 600_000;
  while (clock.monotonic() < endsAt) {
    await clock.step(sync.repair(clock.monotonic()).delayMs + 1);
    repairs++;
  }
  // Two for each of about 20 delays.
  expect(repairs).toBeLessThan(50);
});
