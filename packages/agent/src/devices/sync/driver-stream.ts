import { NodeDefinition, NodeListAndWatchResourcesResponse } from "@nodekeeper/core/gen/dra/v1alpha3/api.ts";
import {
  DeviceDriverDefinition,
  ListAndWatchDevicesRequest,
} from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha1/api.ts";
import { fromGrpcError, MessageBuffers, streamMessages } from "@nodekeeper/core/grpc";
import {
  Backoff,
  type Clock,
  codeOf,
  errorIdOf,
  type Logger,
  messageOf,
  NodekeeperError,
  retryPolicies,
} from "@nodekeeper/core/lib";
import { decodeNamedResources } from "../model/decode-named-resources.ts";
import type { DevicePool, NamedResources } from "../model/model.ts";
import { type DeviceDelta, type DeviceMessage, readMessage } from "../model/read-message.ts";

/** The version of a driver that serves the devices protocol. */
export const deviceApiVersion = "nodekeeper.devices.v1alpha1";

/** What protocol a driver's stream speaks; `none`: its versions have no stream of devices. */
export type StreamProtocol = "devices" | "namedResources" | "none";

/** A message with everything that a driver has. */
export type WholeMessage =
  | {
      protocol: "devices";
      message: DeviceMessage;
      /** Is called when nothing reads the message's bytes any more: they are overwritten by a later message. */
      release: () => void;
    }
  | { protocol: "namedResources"; models: NamedResources[] }
  /** What the agent itself published earlier. */
  | { protocol: "published"; pools: readonly DevicePool[] };

/**
 * `waiting`: no message yet; `streaming`; `ended`: the driver ended its stream, what it reported last holds;
 * `failing`: it broke and is tried again, what it reported last holds; `none`: the driver has no stream.
 */
export type StreamState = "waiting" | "streaming" | "ended" | "failing" | "none";

export interface DriverStreamOptions {
  endpoint: string;
  /** Sent to drivers. */
  nodeName: string;
  protocol: Exclude<StreamProtocol, "none">;
  /** The largest message, bytes. */
  maxReceiveBytes: number;
  onMessage: (message: WholeMessage) => void;
  /** A change of what was reported before; the next message waits for it. Rejects with `invalid` where it does not fit. */
  onDelta: (delta: DeviceDelta) => Promise<void>;
  onState: (state: StreamState, error?: string) => void;
  clock: Clock;
  log: Logger;
  random?: () => number;
}

// A stream that lasts so long is a good one.
const GOOD_AFTER_MS = 30_000;

/** Which protocol the versions stand for that a driver registered with. Today's versions of the kubelet have no stream. */
export function protocolOf(versions: readonly string[]): StreamProtocol {
  if (versions.includes(deviceApiVersion)) return "devices";
  // Drivers of 1.30 register with "1.0.0"; the package of the protocol is v1alpha3.
  return versions.some((version) => /^v?1\.\d+\.\d+$/.test(version) || version === "v1alpha3")
    ? "namedResources"
    : "none";
}

/**
 * Follows one driver's stream until the signal aborts or the driver has none. A stream that fails is tried again: at once
 * after it was open for 30 s, and the first time; after that with a backoff. Never throws.
 */
export async function followDriver(options: DriverStreamOptions, signal: AbortSignal): Promise<void> {
  const { clock, log, onState, random } = options;
  const backoff = new Backoff({ ...retryPolicies.driverStream, ...(random ? { random } : {}) });
  while (!signal.aborted) {
    const startedAt = clock.monotonic();
    try {
      await followOnce(options, signal);
      // As the kubelet of 1.30: the end of a stream is no error, and what was reported holds.
      onState("ended");
      return;
    } catch (error) {
      if (signal.aborted) return;
      const failure = fromGrpcError(error);
      if (codeOf(failure) === "unsupported") {
        onState("none");
        return;
      }
      if (clock.monotonic() - startedAt > GOOD_AFTER_MS) backoff.reset();
      const delayMs = backoff.next();
      // The stream started over has the whole state at once; a driver that never fits is tried ever more slowly.
      if (delayMs === 0 && error instanceof RevisionMismatch) {
        log.info({ err: failure }, "device stream is started over");
        continue;
      }
      onState("failing", messageOf(failure));
      log.warn(
        { err: failure, errorId: errorIdOf(failure) ?? "NK1502", retryInMs: Math.round(delayMs) },
        "device stream failed, will be tried again",
      );
      if (delayMs === 0) continue;
      await clock.sleep(delayMs, signal).catch(() => {});
    }
  }
}

// A change of another state than the one that was reported last.
class RevisionMismatch extends NodekeeperError {
  constructor(base: bigint, known: bigint) {
    super("conflict", `the driver sent a change of revision ${base}, and its last state is ${known}`);
  }
}

async function followOnce(options: DriverStreamOptions, signal: AbortSignal): Promise<void> {
  const { endpoint, protocol, maxReceiveBytes, nodeName, onMessage, onDelta, onState } = options;
  const isOld = protocol === "namedResources";
  const method = isOld
    ? `${NodeDefinition.fullName}/NodeListAndWatchResources`
    : `${DeviceDriverDefinition.fullName}/ListAndWatchDevices`;
  const request = isOld
    ? new Uint8Array()
    : ListAndWatchDevicesRequest.encode({ nodeName, acceptsDeltas: true }).finish();
  let before: Uint8Array | undefined;
  let revision = 0n;
  const buffers = new MessageBuffers();
  const stream = streamMessages(endpoint, method, request, { maxReceiveBytes, buffers }, signal);
  for await (const bytes of stream) {
    onState("streaming");
    if (before && Buffer.compare(before, bytes) === 0) {
      buffers.give(bytes);
      continue;
    }
    before = bytes;
    if (isOld) {
      onMessage({ protocol, models: decodeNamedResources(NodeListAndWatchResourcesResponse.decode(bytes)) });
      continue;
    }
    const message = readMessage(bytes);
    if (message.delta) {
      // The next change may be the same bytes, and mean another state.
      before = undefined;
      const { baseRevision } = message.delta;
      if (revision === 0n || baseRevision !== revision) throw new RevisionMismatch(baseRevision, revision);
      if (message.pools.length > 0)
        throw new NodekeeperError("invalid", "the driver sent a message with both pools and a delta", {
          id: "NK1502",
        });
    }
    revision = message.revision;
    if (message.delta) await onDelta(message.delta);
    else onMessage({ protocol: "devices", message, release: () => buffers.give(bytes) });
  }
}
