import { ListAndWatchDevicesResponse } from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/api.ts";
import { FakeClock, LoopTurns } from "@nodekeeper/core/lib";
import fc from "fast-check";
import { expect, it } from "vitest";
import { PoolReader } from "../model/pool-reader.ts";
import { readMessage } from "../model/read-message.ts";
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
      const driver = new Driver(NAME, NODE, new FakeClock());
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
  const driver = new Driver(NAME, NODE, new FakeClock());
  const turns = new LoopTurns(new FakeClock());
  const message = take(driver, encoded([1, 2, 3]));
  const reading = driver.read(turns);
  driver.withdraw();
  driver.registered("devices", 2, false);
  await reading;
  expect(driver.reported()).toBeUndefined();
  expect(message.isReleased).toBe(false);
});

function contents({ pools, problems, quarantined }: ReturnType<PoolReader["read"]>) {
  const plain = pools.map((pool) => pool.devices.map(({ device }) => device));
  return { plain, problems, quarantined };
}
