import { createHash } from "node:crypto";
import { join } from "node:path";
import { DriverNotRegistered } from "@nodekeeper/api/errors";
import { DRAPluginDefinition, type DRAPluginServiceImplementation } from "@nodekeeper/core/gen/dra/v1/api.ts";
import {
  DRAResourceHealthDefinition,
  type DRAResourceHealthServiceImplementation,
} from "@nodekeeper/core/gen/drahealth/v1/api.ts";
import { type PluginInfo, RegistrationDefinition } from "@nodekeeper/core/gen/pluginregistration/v1/api.ts";
import { type KeptServerOptions, keepServing } from "@nodekeeper/core/grpc";
import {
  type Clock,
  childScope,
  type Logger,
  longestSocketPath,
  messageOf,
  messageWithId,
  stopped,
} from "@nodekeeper/core/lib";
import { RegistrationClient } from "../plugins/index.ts";
import { baseRequest } from "./allocation.ts";
import type { ClaimReference } from "./claim-reader.ts";
import type { PreparedDevice } from "./recorded-devices.ts";

/** The kubelet's calls to a driver's plugin. */
export interface PluginCalls {
  /** NodePrepareResources for one claim. */
  prepare: (driver: string, claim: ClaimReference, call: AbortSignal) => Promise<readonly PreparedDevice[]>;
  /** NodeUnprepareResources for one claim. */
  unprepare: (driver: string, claim: ClaimReference, call: AbortSignal) => Promise<void>;
  /** NodeWatchResources, until the signal aborts. */
  health: (
    driver: string,
    signal: AbortSignal,
  ) => ReturnType<DRAResourceHealthServiceImplementation["nodeWatchResources"]>;
}

export interface KubeletPluginOptions {
  driver: string;
  /** The kubelet's plugin registry directory. */
  registryDirectory: string;
  /** Unique for each process of the agent. */
  instance: string;
  /** Whether the driver reports health. */
  hasHealth: boolean;
  /** Handles the kubelet's calls. */
  calls: PluginCalls;
  clock: Clock;
  log: Logger;
  /** Starts the watch of the socket's directory. Default: a separate instance that does not log. */
  watches?: KeptServerOptions["watches"];
}

/** The plugin's registration. `waiting`: the kubelet has not called yet. */
export type KubeletRegistration =
  | { state: "waiting" }
  | { state: "registered" }
  | { state: "refused"; reason: string };

const PREFIX = "nodekeeper-";
const SUFFIX = ".sock";
// The kubelet's timeout for GetInfo.
const GET_INFO_MS = 1_000;
// The kubelet adds more text to its message for the pod.
const LONGEST_ERROR = 2_000;

// The older version of each service has the same messages. v1beta1 has no share ID; its clients ignore the field.
const draV1beta1 = {
  ...DRAPluginDefinition,
  fullName: "k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin",
} as const;
const healthV1alpha1 = { ...DRAResourceHealthDefinition, fullName: "v1alpha1.DRAResourceHealth" } as const;

/**
 * The kubelet's DRA plugin for one driver, with one socket for registration and calls. Each process of the agent has
 * its own socket, so that the kubelet finds the new one before the old one ends. Plugins built with
 * k8s.io/dynamic-resource-allocation/kubeletplugin do the same in rolling updates.
 */
export class KubeletPlugin {
  readonly hasHealth: boolean;
  /** Wall milliseconds. */
  readonly startedAt: number;
  registration: KubeletRegistration = { state: "waiting" };
  readonly #options: KubeletPluginOptions;
  readonly #scope = childScope();
  readonly #served: Promise<void>;

  constructor(options: KubeletPluginOptions) {
    this.#options = options;
    this.hasHealth = options.hasHealth;
    this.startedAt = options.clock.now();
    this.#served = this.#serve();
  }

  /**
   * Stops the plugin and removes its socket, so that the kubelet unregisters the driver. Calls in progress have about 1
   * s to finish.
   */
  async stop(): Promise<void> {
    this.#scope.abort(stopped("plugin stopped"));
    await this.#served;
  }

  async #serve(): Promise<void> {
    const { driver, registryDirectory, instance, clock, log, watches } = this.#options;
    const options: KeptServerOptions = {
      path: join(registryDirectory, socketName(registryDirectory, driver, instance)),
      addServices: (services) => this.#addServices(services),
      onServing: (isServing) => {
        if (!isServing) this.registration = { state: "waiting" };
      },
      clock,
      log,
      watches,
    };
    const onFailure = (error: unknown) => {
      this.registration = { state: "refused", reason: messageOf(error) };
      log.error(
        { errorId: DriverNotRegistered.id, driver, err: error },
        "failed to serve the kubelet plugin, retrying",
      );
    };
    await keepServing(options, onFailure, this.#scope.signal);
  }

  #addServices(server: Parameters<KeptServerOptions["addServices"]>[0]): void {
    const { driver, hasHealth, calls, log } = this.#options;
    server.add(RegistrationDefinition, {
      // No endpoint: the kubelet uses this socket.
      getInfo: async () => ({
        type: "DRAPlugin",
        name: driver,
        endpoint: "",
        supportedVersions: versions(hasHealth),
      }),
      notifyRegistrationStatus: async ({ pluginRegistered, error }) => {
        this.registration = pluginRegistered ? { state: "registered" } : { state: "refused", reason: error };
        if (pluginRegistered) log.info({ driver }, "registered with the kubelet");
        else log.error({ errorId: DriverNotRegistered.id, driver, reason: error }, "refused by the kubelet");
        return {};
      },
    });
    const service = draService(driver, calls);
    server.add(DRAPluginDefinition, service);
    server.add(draV1beta1, service);
    if (!hasHealth) return;
    const healthService: DRAResourceHealthServiceImplementation = {
      nodeWatchResources: (_request, { signal }) => calls.health(driver, signal),
    };
    server.add(DRAResourceHealthDefinition, healthService);
    server.add(healthV1alpha1, healthService);
  }
}

function draService(driver: string, calls: PluginCalls): DRAPluginServiceImplementation {
  return {
    nodePrepareResources: async ({ claims }, { signal }) =>
      await responses(claims, { devices: [] }, async (claim) => {
        const devices = await calls.prepare(driver, claim, signal);
        return { devices: devices.map(forKubelet) };
      }),
    nodeUnprepareResources: async ({ claims }, { signal }) =>
      await responses(claims, {}, async (claim) => {
        await calls.unprepare(driver, claim, signal);
        return {};
      }),
  };
}

/** Handles claims concurrently. Returns a response for each, by UID: `failed` with the error if handling it failed. */
async function responses<Response>(
  claims: readonly ClaimReference[],
  failed: Response,
  handle: (claim: ClaimReference) => Promise<Response>,
): Promise<{ claims: Record<string, Response & { error: string }> }> {
  const entries = claims.map(async (claim) => {
    const response = await handle(claim).then(
      (handled) => ({ ...handled, error: "" }),
      (error: unknown) => ({ ...failed, error: errorText(error) }),
    );
    return [claim.uid, response] as const;
  });
  return { claims: Object.fromEntries(await Promise.all(entries)) };
}

/** Returns whether a file in the kubelet's registry directory has the name of an agent's socket. */
export function isSocketName(name: string): boolean {
  return name.startsWith(PREFIX) && name.endsWith(SUFFIX);
}

/**
 * Returns the information of the plugin that serves a socket in the kubelet's registry directory. Undefined if it does
 * not respond.
 * @param timeoutMs for connecting and for the response, each; default: the kubelet's timeout of 1 s
 */
export async function pluginAt(
  socket: string,
  { clock, log, timeoutMs = GET_INFO_MS }: { clock: Clock; log: Logger; timeoutMs?: number },
  signal: AbortSignal,
): Promise<PluginInfo | undefined> {
  const timeouts = { dialMs: timeoutMs, infoMs: timeoutMs, noticeMs: timeoutMs };
  try {
    using client = new RegistrationClient(socket, timeouts, clock);
    return await client.getInfo(signal);
  } catch (error) {
    log.debug({ err: error, socket }, "a socket in the kubelet's registry does not respond");
    return undefined;
  }
}

// The kubelet uses the first version that it supports.
function versions(hasHealth: boolean): string[] {
  const health = hasHealth ? ["v1.DRAResourceHealth", "v1alpha1.DRAResourceHealth"] : [];
  return ["v1.DRAPlugin", "v1beta1.DRAPlugin", ...health];
}

function socketName(directory: string, driver: string, instance: string): string {
  const name = `${PREFIX}${driver}-${instance}${SUFFIX}`;
  if (Buffer.byteLength(join(directory, name)) <= longestSocketPath) return name;
  const hash = createHash("sha256").update(driver).digest("base64url").slice(0, 16);
  return `${PREFIX}${hash}-${instance}${SUFFIX}`;
}

function forKubelet({ request, pool, device, shareId, cdiDeviceIds }: PreparedDevice) {
  return {
    requestNames: [baseRequest(request)],
    poolName: pool,
    deviceName: device,
    cdiDeviceIds,
    ...(shareId === "" ? {} : { shareId }),
  };
}

function errorText(error: unknown): string {
  // The kubelet reports it in an Event on the pod. An empty text would mean success.
  return messageWithId(error).slice(0, LONGEST_ERROR) || "failed";
}
