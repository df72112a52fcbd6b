import type { KubeApiClient } from "@nodekeeper/core/kube";
import { FakeClock, LoopTurns, Registry, silentLogger } from "@nodekeeper/core/lib";
import { eventually } from "@nodekeeper/testing/until";
import { expect, test } from "vitest";
import { defaultDeviceSettings } from "../../assembly/testing/defaults.ts";
import { DeviceSync } from "../index.ts";
import { Driver } from "./driver.ts";
import { streamHealth } from "./health.ts";

test("a stream fails the readiness check after a minute on the monotonic clock, whatever the wall clock does", async () => {
  const clock = new FakeClock();
  const sync = new DeviceSync(
    {
      // Not run: only streams are followed.
      client: {} as KubeApiClient,
      watch: () => expect.fail("no watch is opened"),
      nodeName: "worker-1",
      settings: () => defaultDeviceSettings,
      notify: () => {},
      turns: new LoopTurns(clock),
      clock,
      log: silentLogger,
    },
    { registry: new Registry() },
  );
  const health = () =>
    sync
      .healthChecks()
      .find(({ name }) => name === "DeviceStreamsReady")!
      .check();
  const name = "gpu.example.com";
  await sync.handler.register(
    {
      type: "DRAPlugin",
      name,
      endpoint: "/no/such/directory/gpu.sock",
      versions: ["nodekeeper.devices.v1alpha2"],
      registrationSocket: "",
      uid: 0,
      generation: 1,
    },
    new AbortController().signal,
  );
  await eventually(() => expect(sync.status()).toMatchObject([{ state: "failing" }]));
  clock.jump(3_600_000);
  expect(health()).toMatchObject({ ok: true, message: expect.stringContaining(`${name} for 0 s`) });
  clock.jump(-7_200_000);
  await clock.step(59_000);
  expect(health()).toMatchObject({ ok: true, message: expect.stringContaining("for 59 s") });
  await clock.step(1_000);
  expect(health()).toMatchObject({ ok: false, message: expect.stringContaining("for 60 s") });
});

test("a driver that does not answer is named as failing, though its stream is open", async () => {
  const clock = new FakeClock();
  const driver = new Driver("gpu.example.com", "worker-1", clock);
  driver.update({ state: "streaming" });
  expect(streamHealth([driver], 100_000)).toMatchObject({ ok: true, message: "1 driver" });
  await clock.step(30_000);
  driver.heard("its process does not answer");
  expect(streamHealth([driver], 89_000)).toMatchObject({ ok: true });
  expect(streamHealth([driver], 90_000)).toEqual({
    ok: false,
    message: "failing: gpu.example.com for 60 s: its process does not answer",
    errorId: "NK1502",
  });
});
