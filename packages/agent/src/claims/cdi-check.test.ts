import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { silentLogger, systemClock } from "@nodekeeper/core/lib";
import { expect, it } from "vitest";
import { CdiCheck } from "./cdi-check.ts";
import { CdiDirectory } from "./cdi-directory.ts";
import { ClaimWorld, DRIVER } from "./testing/claim-world.ts";

function checkOf(world: ClaimWorld, path: string, boot?: string) {
  const records = world.records(boot);
  const directory = new CdiDirectory(path, join(world.directory, "metadata"));
  const differing: string[] = [];
  const check = new CdiCheck({
    directory,
    records,
    queue: { add: (driver) => void differing.push(driver), addAfter: () => {} },
    clock: systemClock,
    log: silentLogger,
  });
  return { records, directory, check, differing };
}

function textOf(uid: string, boot = "boot-1"): string {
  const owner = {
    driver: DRIVER,
    namespace: "default",
    name: "a",
    uid,
    boot,
    pods: [],
    driverUid: 0,
    devices: [],
  };
  return `# nodekeeper: ${JSON.stringify(owner)}\n{}\n`;
}

it("a file that can't be read or removed is a problem of its own: the others are recorded again or removed", async () => {
  using world = new ClaimWorld();
  const path = join(world.directory, "cdi");
  const { records, directory, check, differing } = checkOf(world, path);
  // A directory can neither be read nor removed as a file, by any user.
  mkdirSync(join(path, "nodekeeper-broken.yaml"), { recursive: true });
  mkdirSync(join(path, ".nodekeeper-left.tmp"));
  writeFileSync(join(path, "nodekeeper-foreign.yaml"), "{}");
  writeFileSync(join(path, directory.nameOf(DRIVER, "uid-1")), textOf("uid-1"));
  await check.start();
  expect(records.of(DRIVER)).toMatchObject([{ uid: "uid-1", state: "prepared" }]);
  expect(differing).toEqual([DRIVER]);
  expect(existsSync(join(path, "nodekeeper-foreign.yaml"))).toBe(false);
  const { ok, message } = check.health();
  expect(ok).toBe(true);
  expect(message).toContain("nodekeeper-broken.yaml: EISDIR");
});

it("a directory that can't be created fails the health check, not the start", async () => {
  using world = new ClaimWorld();
  writeFileSync(join(world.directory, "file"), "");
  const { check } = checkOf(world, join(world.directory, "file", "cdi"));
  await check.start();
  expect(check.health()).toMatchObject({ ok: false, message: expect.stringContaining("ENOTDIR") });
});

it("a deleted file of a prepared claim is noticed", async () => {
  using world = new ClaimWorld();
  const { records, directory, check, differing } = checkOf(world, join(world.directory, "cdi"));
  await records.save(
    DRIVER,
    { namespace: "default", name: "a", uid: "uid-1" },
    { state: "prepared", devices: [], pods: [], cdi: textOf("uid-1") },
  );
  directory.write(DRIVER, "uid-1", textOf("uid-1"));
  await check.start();
  expect(differing).toEqual([]);
  await directory.remove(DRIVER, "uid-1");
  await check.start();
  expect(differing).toEqual([DRIVER]);
});

it("metadata of claims without a record and without a CDI file is removed at the start", async () => {
  using world = new ClaimWorld();
  const { records, check } = checkOf(world, join(world.directory, "cdi"));
  const claim = { namespace: "default", name: "a", uid: "uid-1" };
  await records.save(DRIVER, claim, { state: "prepared", devices: [], pods: [], cdi: textOf("uid-1") });
  const metadata = join(world.directory, "metadata");
  for (const uid of ["uid-1", "uid-2"]) mkdirSync(join(metadata, `${DRIVER}_${uid}`), { recursive: true });
  await check.start();
  expect(readdirSync(metadata)).toEqual([`${DRIVER}_uid-1`]);
});

it.each([
  ["of an earlier boot", "preparing", "boot-1", "boot-2", "prepared"],
  ["that states that the claim is unprepared", "unprepared", "boot-2", "boot-2", "prepared"],
  ["of a claim that is being unprepared", "unpreparing", "boot-2", "boot-2", "unpreparing"],
  ["of an earlier boot, with a file of that boot", "preparing", "boot-1", "boot-1", "preparing"],
] as const)("a CDI file beside a record %s", async (_, state, recorded, written, expected) => {
  using world = new ClaimWorld();
  const claim = { namespace: "default", name: "a", uid: "uid-1" };
  await world.records(recorded).save(DRIVER, claim, { state, devices: [], pods: [], cdi: "" });
  const { records, directory, check, differing } = checkOf(world, join(world.directory, "cdi"), "boot-2");
  directory.write(DRIVER, "uid-1", textOf("uid-1", written));
  await check.start();
  expect(records.get(DRIVER, "uid-1")?.state).toBe(expected);
  expect(differing).toEqual(expected === "prepared" ? [DRIVER] : []);
});

it("a claim that is forgotten while its file is read is not recorded again", async () => {
  using world = new ClaimWorld();
  const claim = { namespace: "default", name: "a", uid: "uid-1" };
  await world.records("boot-1").save(DRIVER, claim, { state: "preparing", devices: [], pods: [], cdi: "" });
  const { records, directory, check } = checkOf(world, join(world.directory, "cdi"), "boot-2");
  directory.write(DRIVER, "uid-1", textOf("uid-1", "boot-2"));
  const read = directory.readNamed.bind(directory);
  directory.readNamed = async (name) => {
    const text = await read(name);
    await records.remove(DRIVER, "uid-1");
    return text;
  };
  await check.start();
  expect(records.get(DRIVER, "uid-1")).toBeUndefined();
});
