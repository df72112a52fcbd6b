import type { DeepPartial, Pool } from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha1/api.ts";
import { LatestValue } from "@nodekeeper/core/lib";
import type { CallContext } from "nice-grpc";
import { expect, it } from "vitest";
import { deviceService } from "./device-services.ts";

it("an agent that accepts deltas gets a device that the author adds to the list it yielded before", async () => {
  const latest = new LatestValue<DeepPartial<Pool>[]>();
  const stop = new AbortController();
  const { signal } = new AbortController();
  const request = { nodeName: "n1", acceptsDeltas: true };
  const messages = deviceService(latest, stop.signal)
    .listAndWatchDevices(request, {
      signal,
    } as CallContext)
    [Symbol.asyncIterator]();
  const devices = [{ name: "gpu-0" }, { name: "gpu-1" }, { name: "gpu-2" }];
  const pools = [{ name: "pool", devices }];
  latest.set(pools);
  expect((await messages.next()).value).toEqual({ revision: 1n, pools });
  devices.push({ name: "gpu-3" });
  latest.set(pools);
  const next = messages.next();
  stop.abort();
  expect((await next).value).toEqual({
    revision: 2n,
    delta: { baseRevision: 1n, pools: [{ name: "pool", upserts: [{ name: "gpu-3" }], removals: [] }] },
  });
});
