import { createClient } from "nice-grpc";
import { NodeDefinition } from "../gen/dra/v1alpha3/api.ts";
import { ListAndWatchDevicesFrame } from "../gen/nodekeeper/devices/v1alpha1/frames.ts";
import { dialUnix, fromGrpcError } from "../grpc/index.ts";
import { Backoff, type Clock, codeOf, type Logger, messageOf } from "../lib/index.ts";
import { decodeNamedResources } from "./decode-named-resources.ts";
import type { NamedResources } from "./model.ts";
import { rawDeviceDriver } from "./pool-reader.ts";

/** The version by which a driver says that it serves our own protocol. */
export const deviceApiVersion = "nodekeeper.devices.v1alpha1";

/** What protocol a driver's stream speaks; `none`: its versions have no stream of devices. */
export type StreamProtocol = "devices" | "namedResources" | "none";

/** Everything a driver has, as it said it last. */
export type DriverMessage =
  | { protocol: "devices"; frame: ListAndWatchDevicesFrame }
  | { protocol: "namedResources"; models: NamedResources[] };

/**
 * `waiting`: no message yet; `streaming`; `ended`: the driver ended its stream, what it said last holds;
 * `failing`: it broke and is tried again, what it said last holds; `none`: the driver has no stream.
 */
export type StreamState = "waiting" | "streaming" | "ended" | "failing" | "none";

export interface DriverStreamOptions {
  endpoint: string;
  /** Drivers are told it. */
  nodeName: string;
  protocol: Exclude<StreamProtocol, "none">;
  /** The largest message, bytes. */
  maxReceiveBytes: number;
  onMessage: (message: DriverMessage) => void;
  onState: (state: StreamState, error?: string) => void;
  clock: Clock;
  log: Logger;
  random?: () => number;
}

// As the kubelet of 1.30 had it.
const RETRY_BASE_MS = 5_000;
const RETRY_MAX_MS = 180_000;
// A stream that lasts so long is a good one.
const GOOD_AFTER_MS = 30_000;

/** Which protocol the versions stand for that a driver registered with. The kubelet's of today have no stream. */
export function protocolOf(versions: readonly string[]): StreamProtocol {
  if (versions.includes(deviceApiVersion)) return "devices";
  // Drivers of 1.30 said "1.0.0"; the package of the protocol is v1alpha3.
  return versions.some((version) => /^v?1\.\d+\.\d+$/.test(version) || version === "v1alpha3")
    ? "namedResources"
    : "none";
}

/** Follows one driver's stream until the signal aborts or the driver has none. Never throws. */
export async function followDriver(options: DriverStreamOptions, signal: AbortSignal): Promise<void> {
  const { clock, log, onState, random } = options;
  const backoff = new Backoff({
    baseMs: RETRY_BASE_MS,
    maxMs: RETRY_MAX_MS,
    jitter: 0.3,
    ...(random ? { random } : {}),
  });
  while (!signal.aborted) {
    const begun = clock.monotonic();
    try {
      await followOnce(options, signal);
      // As the seed has it: the end of a stream is no error, and what was said holds.
      onState("ended");
      return;
    } catch (thrown) {
      if (signal.aborted) return;
      const error = fromGrpcError(thrown);
      if (codeOf(error) === "unsupported") {
        onState("none");
        return;
      }
      if (clock.monotonic() - begun > GOOD_AFTER_MS) backoff.reset();
      const delayMs = backoff.next();
      onState("failing", messageOf(error));
      log.warn({ err: error, retryInMs: Math.round(delayMs) }, "device stream failed, will be tried again");
      await clock.sleep(delayMs, signal).catch(() => {});
    }
  }
}

async function followOnce(options: DriverStreamOptions, signal: AbortSignal): Promise<void> {
  const { endpoint, protocol, maxReceiveBytes, nodeName, onMessage, onState } = options;
  const channel = dialUnix(endpoint, { maxReceiveBytes });
  try {
    if (protocol === "devices") {
      const client = createClient(rawDeviceDriver, channel);
      let before: Uint8Array | undefined;
      for await (const message of client.listAndWatchDevices({ nodeName }, { signal })) {
        const bytes = message as unknown as Uint8Array;
        onState("streaming");
        if (before && Buffer.compare(before, bytes) === 0) continue;
        before = bytes;
        onMessage({ protocol, frame: ListAndWatchDevicesFrame.decode(bytes) });
      }
      return;
    }
    const client = createClient(NodeDefinition, channel);
    for await (const response of client.nodeListAndWatchResources({}, { signal })) {
      onState("streaming");
      onMessage({ protocol, models: decodeNamedResources(response) });
    }
  } finally {
    channel.close();
  }
}
