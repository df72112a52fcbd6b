import { expect, it } from "vitest";
import { ClaimWorld, DRIVER } from "./testing/claim-world.ts";

it("a record is what is stored if none of several changes of one turn can be committed", async () => {
  using world = new ClaimWorld();
  const records = world.records();
  const claim = world.claim("claim", "gpu-0");
  const full = () => {
    throw new Error("disk is full");
  };
  const later = { pods: [{ name: "later", uid: "later" }], devices: [] };
  const recorded = { devices: [], pods: [], cdi: "" };
  const commit = world.store.together.bind(world.store);

  world.store.together = full;
  const first = records.save(DRIVER, claim, { ...recorded, state: "preparing" });
  const all = await Promise.allSettled([first, records.complete(DRIVER, claim.uid, later)]);
  expect(all.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  expect(records.get(DRIVER, claim.uid)).toBeUndefined();

  world.store.together = commit;
  await records.save(DRIVER, claim, { ...recorded, state: "preparing" });
  world.store.together = full;
  const changes = [
    records.save(DRIVER, claim, { ...recorded, state: "prepared" }),
    records.complete(DRIVER, claim.uid, later),
    records.remove(DRIVER, claim.uid),
  ];
  expect((await Promise.allSettled(changes)).map(({ status }) => status)).toEqual(Array(3).fill("rejected"));
  expect(records.get(DRIVER, claim.uid)).toMatchObject({ state: "preparing", pods: [] });
  expect(world.records().get(DRIVER, claim.uid)).toMatchObject({ state: "preparing", pods: [] });
});
