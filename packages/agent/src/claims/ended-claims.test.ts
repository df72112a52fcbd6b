import { FakeClock, silentLogger, stopped } from "@nodekeeper/core/lib";
import { expect, it } from "vitest";
import { EndedClaims } from "./ended-claims.ts";
import { ClaimWorld, DRIVER, NODE, recordedDevice } from "./testing/claim-world.ts";

async function setUp(world: ClaimWorld) {
  const clock = new FakeClock();
  const records = world.records();
  const ended = new Set<string>();
  // Of an unrelated pod: without any, nothing is unprepared.
  const inUse = new Set([`${DRIVER}/${NODE}/other`]);
  const asked: string[] = [];
  const unprepared: string[] = [];
  const record = (name: string, device: string) =>
    records.save(
      DRIVER,
      { namespace: "default", name, uid: name },
      { state: "prepared", devices: [recordedDevice(device)], pods: [], cdi: "" },
    );
  const preparation = {
    hasEnded: async (_driver: string, uid: string) => {
      asked.push(uid);
      return ended.has(uid);
    },
    unprepareEnded: async (driver: string, uid: string) => {
      if (!ended.has(uid)) return false;
      unprepared.push(uid);
      await records.remove(driver, uid);
      return true;
    },
  };
  const claims = new EndedClaims({
    ...{ records, preparation, clock },
    devicesInUse: async () => inUse,
    log: silentLogger,
  });
  const ending = new AbortController();
  const running = claims.run(ending.signal);
  const end = async () => {
    ending.abort(stopped("test"));
    await running;
  };
  return { clock, record, ended, inUse, asked, unprepared, end };
}

it("a claim that has ended at two looks is unprepared; one that exists or is in use is not", async () => {
  using world = new ClaimWorld();
  const { clock, record, ended, inUse, asked, unprepared, end } = await setUp(world);
  for (const [at, name] of ["ended", "existing", "used"].entries()) await record(name, `gpu-${at}`);
  ended.add("ended").add("used");
  inUse.add(`${DRIVER}/${NODE}/gpu-2`);
  await clock.step(60_000);
  expect(asked.sort()).toEqual(["ended", "existing"]);
  expect(unprepared).toEqual([]);
  await clock.step(60_000);
  expect(unprepared).toEqual(["ended"]);
  await end();
});

it("one that a pod uses at the second look, or that is there again, stays", async () => {
  using world = new ClaimWorld();
  const { clock, record, ended, inUse, unprepared, end } = await setUp(world);
  await record("used", "gpu-0");
  await record("back", "gpu-1");
  ended.add("used").add("back");
  await clock.step(60_000);
  inUse.add(`${DRIVER}/${NODE}/gpu-0`);
  ended.delete("back");
  await clock.step(1_200_000);
  expect(unprepared).toEqual([]);
  await end();
});

it("where no device is in use, which kubelets that report no claims answer too, none is unprepared", async () => {
  using world = new ClaimWorld();
  const { clock, record, ended, inUse, asked, unprepared, end } = await setUp(world);
  await record("ended", "gpu-0");
  ended.add("ended");
  inUse.clear();
  await clock.step(60_000);
  await clock.step(600_000);
  expect(asked).toEqual([]);
  inUse.add(`${DRIVER}/${NODE}/other`);
  await clock.step(600_000);
  inUse.clear();
  await clock.step(60_000);
  expect(asked).toEqual(["ended"]);
  expect(unprepared).toEqual([]);
  // It was no suspect any more.
  inUse.add(`${DRIVER}/${NODE}/other`);
  await clock.step(600_000);
  expect(unprepared).toEqual([]);
  await clock.step(60_000);
  expect(unprepared).toEqual(["ended"]);
  await end();
});
