import { NodekeeperError } from "@nodekeeper/core/lib";
import type { DeviceSync } from "../devices/index.ts";
import { type PluginExchanges, shownJson } from "../plugins/index.ts";
import type { JsonRoute } from "./api.ts";
import { apiRoute } from "./api-route.ts";

/** Return the last exchanges with a plugin, by plugin type. Undefined if the name is not known. */
export type ExchangeSources = Readonly<Record<string, (name: string) => PluginExchanges | undefined>>;

/** The route for the last exchanges between a plugin and the agent. */
export function exchangeRoute(sources: ExchangeSources): JsonRoute {
  return apiRoute("plugins/exchange", ({ type, name }) => {
    const found = Object.hasOwn(sources, type) ? sources[type]!(name) : undefined;
    if (found) return found;
    throw new NodekeeperError("notFound", `no ${type} ${name}; /api/v1/plugins lists them`);
  });
}

const streamCalls: Readonly<Record<string, string>> = {
  devices: "ListAndWatchDevices",
  namedResources: "NodeListAndWatchResources",
};

/**
 * Returns the last exchanges with a driver: the devices of its last message as they are to be published, and its calls
 * for claims. Undefined if the driver is not known.
 */
export function driverExchanges(
  driver: string,
  sync: Pick<DeviceSync, "status" | "devicesOf">,
  calls: PluginExchanges = { calls: [], durations: [] },
): PluginExchanges | undefined {
  const status = sync.status().find(({ name }) => name === driver);
  if (!status) return undefined;
  const { protocol, messageAt, error } = status;
  const call = streamCalls[protocol];
  if (messageAt === undefined || call === undefined) return calls;
  const devices = sync.devicesOf(driver).map(({ pool, device }) => ({ pool, ...device }));
  const message = { call, at: messageAt, answer: shownJson(devices), ...(error ? { error } : {}) };
  return { ...calls, calls: [message, ...calls.calls].sort((a, b) => b.at - a.at) };
}
