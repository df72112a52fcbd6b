import { DeviceStreamFailed } from "@nodekeeper/api/errors";
import { NodeDefinition, NodeListAndWatchResourcesResponse } from "@nodekeeper/core/gen/dra/v1alpha3/api.ts";
import {
  DeviceDriverDefinition,
  ListAndWatchDevicesRequest,
} from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/api.ts";
import {
  decodeMessage,
  fromGrpcError,
  type MessageBounds,
  MessageBuffers,
  numbers,
  streamMessages,
} from "@nodekeeper/core/grpc";
import {
  Backoff,
  type Clock,
  codeOf,
  errorIdOf,
  type Logger,
  messageOf,
  retryPolicies,
  sleepOrAbort,
} from "@nodekeeper/core/lib";
import { type Contract, contractOf } from "../model/contract.ts";
import { decodeNamedResources } from "../model/decode-named-resources.ts";
import type { DevicePool, NamedResources } from "../model/model.ts";
import { type DeviceMessage, readMessage } from "../model/read-message.ts";

/** The protocol of a driver's stream; `none` if its versions have no device stream. */
export type StreamProtocol = "devices" | "namedResources" | "none";

/** Everything that a driver reports. */
export type DriverMessage =
  | {
      protocol: "devices";
      message: DeviceMessage;
      /** Call it when the message's bytes are no longer read: a later message overwrites them. */
      release: () => void;
    }
  | { protocol: "namedResources"; models: NamedResources[] }
  /** Pools that the agent published earlier. */
  | { protocol: "published"; pools: readonly DevicePool[] };

/**
 * `waiting`: no message yet; `streaming`; `ended`: the driver ended its stream; `failing`: the stream broke and is
 * retried; `none`: the driver has no stream. If `ended` or `failing`, the last report stays valid.
 */
export type StreamState = "waiting" | "streaming" | "ended" | "failing" | "none";

export interface DriverStreamOptions {
  endpoint: string;
  /** Sent to the driver. */
  nodeName: string;
  /** Undefined: the stream of Kubernetes 1.30. */
  contract: Contract | undefined;
  /** Maximum size of a message, bytes. */
  maxReceiveBytes: number;
  clock: Clock;
  log: Logger;
  random?: () => number;
}

// A stream that stays open longer than this resets the backoff.
const GOOD_AFTER_MS = 30_000;

/**
 * Returns the protocol for the versions that a driver registered with. The kubelet's current DRA versions have no
 * stream.
 */
export function protocolOf(versions: readonly string[]): StreamProtocol {
  if (contractOf(versions)) return "devices";
  // Drivers of 1.30 register with "1.0.0"; the proto package is v1alpha3.
  return versions.some((version) => /^v?1\.\d+\.\d+$/.test(version) || version === "v1alpha3")
    ? "namedResources"
    : "none";
}

/** A change of a stream's state, with the message received, if any. */
export interface StreamUpdate {
  state: StreamState;
  /** Set if `failing`. */
  error?: string;
  message?: DriverMessage;
}

/**
 * Yields a driver's messages and the states of its stream until the signal aborts, the driver ends its stream, or it
 * turns out to have none. A stream that fails is reopened: at once the first time and after it was open for 30 s,
 * otherwise with a backoff. Never throws.
 */
export async function* followDriver(
  options: DriverStreamOptions,
  signal: AbortSignal,
): AsyncGenerator<StreamUpdate> {
  const { clock, log, random } = options;
  const backoff = new Backoff({ ...retryPolicies.driverStream, random });
  while (!signal.aborted) {
    const startedAt = clock.monotonic();
    try {
      yield* messagesOf(options, signal);
      // As in the kubelet 1.30, the end of a stream is not an error, and the last report stays valid.
      yield { state: "ended" };
      return;
    } catch (error) {
      if (signal.aborted) return;
      const failure = fromGrpcError(error);
      if (codeOf(failure) === "unsupported") {
        yield { state: "none" };
        return;
      }
      if (clock.monotonic() - startedAt > GOOD_AFTER_MS) backoff.reset();
      const delayMs = backoff.next();
      yield { state: "failing", error: messageOf(failure) };
      log.warn(
        {
          err: failure,
          errorId: errorIdOf(failure) ?? DeviceStreamFailed.id,
          retryInMs: Math.round(delayMs),
        },
        "device stream failed, retrying",
      );
      if (delayMs > 0) await sleepOrAbort(clock, delayMs, signal);
    }
  }
}

// Follows one stream. Omits messages that equal the previous one.
async function* messagesOf(
  { endpoint, contract, maxReceiveBytes, nodeName }: DriverStreamOptions,
  signal: AbortSignal,
): AsyncGenerator<StreamUpdate> {
  const isOld = contract === undefined;
  const method = isOld
    ? `${NodeDefinition.fullName}/NodeListAndWatchResources`
    : `${contract}.${DeviceDriverDefinition.name}/ListAndWatchDevices`;
  const request = isOld ? new Uint8Array() : ListAndWatchDevicesRequest.encode({ nodeName }).finish();
  let before: Uint8Array | undefined;
  const buffers = new MessageBuffers();
  const call = { method, request };
  for await (const bytes of streamMessages(endpoint, call, { maxReceiveBytes, buffers }, signal)) {
    if (before && Buffer.compare(before, bytes) === 0) {
      buffers.give(bytes);
      yield { state: "streaming" };
      continue;
    }
    before = bytes;
    yield { state: "streaming", message: isOld ? namedResources(bytes) : devices(bytes, buffers) };
  }
}

// 10,000 devices with five attributes have half of them: an attribute has two entries. Unlike messages of the other
// contract, the whole message is decoded at once.
const namedBounds: MessageBounds = {
  // resources, namedResources, instances, attributes, attributeValue, then intSlice and stringSlice.
  repeated: { 1: { 1: { 1: { 2: { 2: { 8: { 1: numbers }, 9: { 1: {} } } } } } } },
  most: 220_000,
  what: "resources, instances, attributes and values",
};

function namedResources(bytes: Uint8Array): DriverMessage {
  const models = decodeNamedResources(decodeMessage(NodeListAndWatchResourcesResponse, bytes, namedBounds));
  return { protocol: "namedResources", models };
}

function devices(bytes: Uint8Array, buffers: MessageBuffers): DriverMessage {
  return { protocol: "devices", message: readMessage(bytes), release: () => buffers.give(bytes) };
}
