import { createHash } from "node:crypto";
import { readdir, unlink } from "node:fs/promises";
import { join } from "node:path";
import {
  DRAPluginDefinition,
  type DRAPluginServiceImplementation,
  type NodePrepareResourceResponse,
} from "@nodekeeper/core/gen/dra/v1/api.ts";
import {
  DRAResourceHealthDefinition,
  type DRAResourceHealthServiceImplementation,
} from "@nodekeeper/core/gen/drahealth/v1/api.ts";
import { RegistrationDefinition } from "@nodekeeper/core/gen/pluginregistration/v1/api.ts";
import { type KeptServerOptions, keepServing } from "@nodekeeper/core/grpc";
import {
  type Clock,
  childScope,
  type Logger,
  longestSocketPath,
  messageOf,
  messageWithId,
  probeSocket,
  stopped,
} from "@nodekeeper/core/lib";
import { baseRequest } from "./allocation.ts";
import type { PreparedDevice } from "./cdi-file.ts";
import type { ClaimReference } from "./claim-reader.ts";

export interface KubeletPluginOptions {
  driver: string;
  /** Where the kubelet looks for plugins. */
  registryDirectory: string;
  /** Another one for each process of the agent. */
  instance: string;
  /** Whether the driver reports health. */
  hasHealth: boolean;
  prepare: (claim: ClaimReference) => Promise<readonly PreparedDevice[]>;
  unprepare: (claim: ClaimReference) => Promise<void>;
  health: DRAResourceHealthServiceImplementation["nodeWatchResources"];
  clock: Clock;
  log: Logger;
}

/** How the plugin stands with the kubelet. `waiting`: the kubelet has not answered yet. */
export type KubeletRegistration =
  | { state: "waiting" }
  | { state: "registered" }
  | { state: "refused"; reason: string };

const PREFIX = "nodekeeper-";
const SUFFIX = ".sock";
// The kubelet's message for the pod has more than this.
const LONGEST_ERROR = 2_000;

// The older version of each service has the same messages; a share's ID, which v1beta1 has not, is left unread.
const draV1beta1 = {
  ...DRAPluginDefinition,
  fullName: "k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin",
} as const;
const healthV1alpha1 = { ...DRAResourceHealthDefinition, fullName: "v1alpha1.DRAResourceHealth" } as const;

/**
 * The kubelet's DRA plugin of one driver, on one socket for registration and calls. A process of the agent has a socket
 * of its own, so that the kubelet finds the new one while the old one ends, as it does with plugins of
 * k8s.io/dynamic-resource-allocation/kubeletplugin that are updated by RollingUpdate.
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

  /** Ends it, and removes its socket: the kubelet forgets the driver. Calls under way have about 1 s. */
  async stop(): Promise<void> {
    this.#scope.abort(stopped("plugin stopped"));
    await this.#served;
  }

  async #serve(): Promise<void> {
    const { driver, registryDirectory, instance, clock, log } = this.#options;
    const options: KeptServerOptions = {
      path: join(registryDirectory, socketName(registryDirectory, driver, instance)),
      addServices: (services) => this.#addServices(services),
      onLost: () => {
        this.registration = { state: "waiting" };
      },
      clock,
      log,
    };
    const onFailure = (error: unknown) => {
      this.registration = { state: "refused", reason: messageOf(error) };
      log.error(
        { errorId: "NK1509", driver, err: error },
        "kubelet plugin can't be served, will be tried again",
      );
    };
    await keepServing(options, onFailure, this.#scope.signal);
  }

  #addServices(server: Parameters<KeptServerOptions["addServices"]>[0]): void {
    const { driver, hasHealth, health, log } = this.#options;
    server.add(RegistrationDefinition, {
      // No endpoint: the kubelet takes the socket itself.
      getInfo: async () => ({
        type: "DRAPlugin",
        name: driver,
        endpoint: "",
        supportedVersions: versions(hasHealth),
      }),
      notifyRegistrationStatus: async ({ pluginRegistered, error }) => {
        this.registration = pluginRegistered ? { state: "registered" } : { state: "refused", reason: error };
        if (pluginRegistered) log.info({ driver }, "registered with the kubelet");
        else log.error({ errorId: "NK1509", driver, reason: error }, "refused by the kubelet");
        return {};
      },
    });
    const calls = this.#calls();
    server.add(DRAPluginDefinition, calls);
    server.add(draV1beta1, calls);
    if (!hasHealth) return;
    server.add(DRAResourceHealthDefinition, { nodeWatchResources: health });
    server.add(healthV1alpha1, { nodeWatchResources: health });
  }

  #calls(): DRAPluginServiceImplementation {
    const { prepare, unprepare } = this.#options;
    return {
      async nodePrepareResources({ claims }) {
        const answers = claims.map(async (claim): Promise<[string, NodePrepareResourceResponse]> => {
          try {
            return [claim.uid, { devices: (await prepare(claim)).map(forKubelet), error: "" }];
          } catch (error) {
            return [claim.uid, { devices: [], error: errorText(error) }];
          }
        });
        return { claims: Object.fromEntries(await Promise.all(answers)) };
      },
      async nodeUnprepareResources({ claims }) {
        const answers = claims.map(async (claim): Promise<[string, { error: string }]> => {
          try {
            await unprepare(claim);
            return [claim.uid, { error: "" }];
          } catch (error) {
            return [claim.uid, { error: errorText(error) }];
          }
        });
        return { claims: Object.fromEntries(await Promise.all(answers)) };
      },
    };
  }
}

/** Removes sockets that earlier processes of the agent left; those that a process still serves stay. */
export async function removeStaleSockets(registryDirectory: string, clock: Clock): Promise<void> {
  const names = await readdir(registryDirectory).catch(() => []);
  for (const name of names.filter((each) => each.startsWith(PREFIX) && each.endsWith(SUFFIX))) {
    const path = join(registryDirectory, name);
    if ((await probeSocket(clock, path)) === "refused") await unlink(path).catch(() => {});
  }
}

// The first version that the kubelet knows is the one it uses.
function versions(hasHealth: boolean): string[] {
  const health = hasHealth ? ["v1.DRAResourceHealth", "v1alpha1.DRAResourceHealth"] : [];
  return ["v1.DRAPlugin", "v1beta1.DRAPlugin", ...health];
}

function socketName(folder: string, driver: string, instance: string): string {
  const name = `${PREFIX}${driver}-${instance}${SUFFIX}`;
  if (Buffer.byteLength(join(folder, name)) <= longestSocketPath) return name;
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
  // The kubelet shows it in an Event of the pod. An empty text would be success.
  return messageWithId(error).slice(0, LONGEST_ERROR) || "failed";
}
