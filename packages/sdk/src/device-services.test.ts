import { ListAndWatchDevicesResponse } from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/api.ts";
import { expect, it } from "vitest";
import { deviceEncoder } from "./device-services.ts";

it("a response has all pools as the author yielded them, with devices that were added or replaced", () => {
  const encode = deviceEncoder();
  const decoded = () => ListAndWatchDevicesResponse.decode(encode(pools));
  const whole = () =>
    ListAndWatchDevicesResponse.decode(ListAndWatchDevicesResponse.encode(expected()).finish());
  const expected = () => ListAndWatchDevicesResponse.fromPartial({ pools });
  const devices = [{ name: "gpu-0", attributes: { model: { string: "a" } } }, { name: "gpu-1" }];
  const counters = { name: "memory", counters: { size: "40Gi" } };
  const pools = [{ name: "pool", devices, sharedCounters: [counters] }, { name: "empty" }];
  expect(decoded()).toEqual(whole());
  devices[0] = { name: "gpu-0", attributes: { model: { string: "b" } } };
  devices.push({ name: "gpu-2" });
  expect(decoded()).toEqual(whole());
  expect(decoded().pools[0]?.devices.map(({ name }) => name)).toEqual(["gpu-0", "gpu-1", "gpu-2"]);
});
