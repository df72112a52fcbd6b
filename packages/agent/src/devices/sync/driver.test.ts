import { setImmediate } from "node:timers/promises";
import { Device, ListAndWatchDevicesResponse } from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha1/api.ts";
import { FakeClock, LoopTurns } from "@nodekeeper/core/lib";
import fc from "fast-check";
import { expect, it } from "vitest";
import { PoolReader } from "../model/pool-reader.ts";
import { type DeviceDelta, readMessage } from "../model/read-message.ts";
import { Driver } from "./driver.ts";

const NAME = "gpu.example.com";
const NODE = "worker-1";

interface Message {
  bytes: Uint8Array;
  isReleased: boolean;
}

const device = (value: number, at: number) => ({
  name: `device-${at}`,
  attributes: { value: { int: BigInt(value) } },
});

function encoded(values: readonly number[]): Uint8Array {
  const devices = values.map(device);
  const message = ListAndWatchDevicesResponse.fromPartial({ pools: [{ name: NODE, devices }] });
  return ListAndWatchDevicesResponse.encode(message).finish();
}

// A message's memory is overwritten as soon as the driver releases it.
function take(driver: Driver, bytes: Uint8Array): Message {
  const message: Message = { bytes: Buffer.from(bytes), isReleased: false };
  driver.take({
    protocol: "devices",
    message: readMessage(message.bytes),
    release: () => {
      expect(message.isReleased).toBe(false);
      message.isReleased = true;
      message.bytes.fill(0xff);
    },
  });
  return message;
}

it("what is read is that of the last message, though the memory of those before is used again", async () => {
  const values = fc.array(fc.nat(3), { maxLength: 12 });
  // Each message is read at once, while later ones come, or not before the next one.
  const reading = fc.constantFrom("wait", "start", "skip");
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(values, reading), { minLength: 1, maxLength: 8 }), async (steps) => {
      const driver = new Driver(NAME, NODE);
      const turns = new LoopTurns(new FakeClock());
      const messages: Message[] = [];
      const started: Promise<void>[] = [];
      for (const [devices, how] of steps) {
        messages.push(take(driver, encoded(devices)));
        if (how === "wait") await driver.read(turns);
        if (how === "start") started.push(driver.read(turns));
      }
      await Promise.all([...started, driver.read(turns)]);
      const alone = new PoolReader({ driver: NAME, nodeName: NODE });
      const expected = alone.read(readMessage(encoded(steps.at(-1)![0])));
      expect(contents(driver.reported()!)).toEqual(contents(expected));
      // The last is compared with the next one.
      expect(messages.map(({ isReleased }) => isReleased)).toEqual(
        messages.map((_, at) => at < messages.length - 1),
      );
    }),
    { numRuns: 100 },
  );
});

it("a message that is being read when all is forgotten is not released", async () => {
  const driver = new Driver(NAME, NODE);
  const turns = new LoopTurns(new FakeClock());
  const message = take(driver, encoded([1, 2, 3]));
  const reading = driver.read(turns);
  driver.forget();
  await reading;
  expect(driver.reported()).toBeUndefined();
  expect(message.isReleased).toBe(false);
});

// Work waits for each of its steps to be admitted by a test.
class HeldTurns extends LoopTurns {
  readonly #waiting: (() => void)[] = [];
  #isOpen = false;

  constructor() {
    super(new FakeClock());
  }

  override async pass(): Promise<void> {
    if (!this.#isOpen) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  /** Admits one step, where one is waiting, and waits until it is done. */
  async step(): Promise<void> {
    await setImmediate();
    this.#waiting.shift()?.();
    await setImmediate();
  }

  /** Admits all steps from now on, and waits until they are done. */
  async open(): Promise<void> {
    this.#isOpen = true;
    for (const resolve of this.#waiting.splice(0)) resolve();
    await setImmediate();
  }
}

// Large enough for several steps each.
const many = (count: number, value: number) => Array<number>(count).fill(value);

function deltaOf(values: readonly number[]): DeviceDelta {
  const upserts = values.map((value, at) => Device.encode(Device.fromPartial(device(value, at))).finish());
  return { baseRevision: 1n, pools: [{ name: NODE, upserts, removals: [] }] };
}

const isHeld = async (work: Promise<void>) =>
  (await Promise.race([work.then(() => "done"), setImmediate("held")])) === "held";

it.each(["first", "last"])(
  "a delta is applied to the message that is being read, where its steps could end %s",
  async (end) => {
    const driver = new Driver(NAME, NODE);
    const first = take(driver, encoded(many(1000, 1)));
    await driver.read(new LoopTurns(new FakeClock()));
    const second = take(driver, encoded(many(1200, 2)));
    const ofMessage = new HeldTurns();
    const reading = driver.read(ofMessage);
    await ofMessage.step();
    expect(await isHeld(reading)).toBe(true);
    const ofDelta = new HeldTurns();
    const applying = driver.apply(deltaOf(many(400, 3)), ofDelta);
    await ofDelta.step();
    expect(await isHeld(applying)).toBe(true);
    for (const turns of end === "first" ? [ofDelta, ofMessage] : [ofMessage, ofDelta]) await turns.open();
    await Promise.all([reading, applying]);
    expect(values(driver)).toEqual([...many(400, 3), ...many(800, 2)]);
    expect([first.isReleased, second.isReleased]).toEqual([true, false]);
    // The next one is compared with both.
    take(driver, encoded([...many(400, 3), ...many(800, 4)]));
    await driver.read(ofMessage);
    expect(values(driver)).toEqual([...many(400, 3), ...many(800, 4)]);
    expect(second.isReleased).toBe(true);
  },
);

it.each([
  ["fits", []],
  ["does not fit", [{ name: "other", upserts: [], removals: [] }]],
])("a message that comes while a delta that %s is applied is read after it", async (_, others) => {
  const driver = new Driver(NAME, NODE);
  take(driver, encoded(many(1000, 1)));
  await driver.read(new LoopTurns(new FakeClock()));
  const delta = deltaOf(many(400, 3));
  delta.pools.push(...others);
  const ofDelta = new HeldTurns();
  const applying = driver.apply(delta, ofDelta);
  const applied = applying.then(
    () => undefined,
    (error: Error) => error.message,
  );
  await ofDelta.step();
  take(driver, encoded(many(1200, 2)));
  const ofMessage = new HeldTurns();
  const reading = driver.read(ofMessage);
  await ofMessage.open();
  await ofDelta.open();
  await reading;
  expect(await applied).toEqual(others.length > 0 ? expect.stringContaining('pool "other"') : undefined);
  expect(values(driver)).toEqual(many(1200, 2));
});

it("deltas that come while a message is read are applied one after another", async () => {
  const driver = new Driver(NAME, NODE);
  take(driver, encoded(many(1000, 1)));
  const turns = new HeldTurns();
  const work = [driver.read(turns)];
  await turns.step();
  work.push(driver.apply(deltaOf(many(600, 2)), turns), driver.apply(deltaOf(many(300, 3)), turns));
  for (let step = 0; step < 50; step++) await turns.step();
  await Promise.all(work);
  expect(values(driver)).toEqual([...many(300, 3), ...many(300, 2), ...many(400, 1)]);
});

function values(driver: Driver): number[] {
  const { plain } = contents(driver.reported()!);
  return plain[0]!.map(({ attributes }) => Number(attributes?.value?.int));
}

function contents({ pools, problems, quarantined }: ReturnType<PoolReader["read"]>) {
  const plain = pools.map((pool) => pool.devices.map(({ device }) => device));
  return { plain, problems, quarantined };
}
