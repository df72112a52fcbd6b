import { join } from "node:path";
import { DevicePreparationDefinition } from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import { FakeClock, systemClock } from "@nodekeeper/core/lib";
import { createServer, ServerError, Status } from "nice-grpc";
import { expect, it } from "vitest";
import { DriverClient } from "./driver-client.ts";
import { ClaimWorld, DRIVER, serveDriver } from "./testing/claim-world.ts";

const never = new AbortController().signal;
const service = DevicePreparationDefinition.fullName;

it.each([
  ["devices", Buffer.from([0x0a, 0])],
  // A device's edits with an empty variable.
  ["edits", Buffer.from([0x0a, 4, 0x2a, 2, 0x0a, 0])],
])("an answer with hundreds of thousands of empty %s is refused before it is decoded", async (_, entry) => {
  using world = new ClaimWorld();
  const endpoint = join(world.directory, "driver.sock");
  const answer = Buffer.concat(Array.from({ length: 500_000 }, () => entry));
  const { prepareDevices } = DevicePreparationDefinition.methods;
  const server = createServer();
  server.add(
    {
      ...DevicePreparationDefinition,
      methods: {
        prepareDevices: {
          ...prepareDevices,
          responseType: { ...prepareDevices.responseType, encode: () => ({ finish: () => answer }) },
        },
      },
    } as unknown as typeof DevicePreparationDefinition,
    { prepareDevices: async () => ({}) } as never,
  );
  await server.listen(`unix:${endpoint}`);
  const client = new DriverClient({
    driver: DRIVER,
    endpoint,
    service,
    deadlineMs: () => 60_000,
    clock: systemClock,
  });
  try {
    const prepared = client.prepare(world.claim("a"), { pods: [], devices: [] }, never);
    await expect(prepared).rejects.toThrow("more than 50000 devices and edits");
  } finally {
    client.close();
    server.forceShutdown();
  }
});

it.each([
  ["is answered by the driver with DEADLINE_EXCEEDED", "answered"],
  ["is not answered", "timedOut"],
])("a call that %s counts as %s", async (_, counted) => {
  using world = new ClaimWorld();
  const endpoint = join(world.directory, "driver.sock");
  const called = Promise.withResolvers<void>();
  const server = await serveDriver(endpoint, {
    preparation: {
      prepareDevices: async (_request, { signal }) => {
        called.resolve();
        if (counted === "answered") throw new ServerError(Status.DEADLINE_EXCEEDED, "the firmware is busy");
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
        return {};
      },
      unprepareDevices: async () => ({}),
    },
  });
  const clock = new FakeClock();
  const outcomes: string[] = [];
  const timeouts = { answered: () => outcomes.push("answered"), timedOut: () => outcomes.push("timedOut") };
  const client = new DriverClient({
    driver: DRIVER,
    endpoint,
    service,
    deadlineMs: () => 1_000,
    timeouts,
    clock,
  });
  try {
    const prepared = client.prepare(world.claim("a"), { pods: [], devices: [] }, never);
    const refused = expect(prepared).rejects.toMatchObject({ code: "deadline" });
    await called.promise;
    if (counted === "timedOut") await clock.step(1_000);
    await refused;
    expect(outcomes).toEqual([counted]);
  } finally {
    client.close();
    server.stop();
  }
});
