import { rmSync } from "node:fs";
import { join } from "node:path";
import { DeviceDriverDefinition } from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/api.ts";
import {
  DeviceHealthReportDefinition,
  DevicePreparationDefinition,
} from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import { RegistrationDefinition } from "@nodekeeper/core/gen/pluginregistration/v1/api.ts";
import { createServer, ServerError, Status } from "nice-grpc";

type Call = "getInfo" | "notifyRegistrationStatus";

const supportedVersions = [
  "nodekeeper.devices.v1alpha2",
  ...[DeviceDriverDefinition, DevicePreparationDefinition, DeviceHealthReportDefinition].map(
    ({ fullName }) => fullName,
  ),
];

/** A driver's registration on a socket of its own, whose calls fail if a case says so. */
export class SplitRegistration {
  /** The call that fails. */
  failing: Call | undefined;
  /** As "getInfo succeeded". */
  readonly outcomes: string[] = [];
  readonly #server = createServer();
  readonly #socket: string;

  constructor(directory: string, name: string, endpoint: string) {
    this.#socket = join(directory, `${name}-reg.sock`);
    this.#server.add(RegistrationDefinition, {
      getInfo: async () => {
        this.#call("getInfo");
        return { type: "DRAPlugin", name, endpoint, supportedVersions };
      },
      notifyRegistrationStatus: async ({ pluginRegistered, error }) => {
        this.#call("notifyRegistrationStatus");
        this.outcomes.push(pluginRegistered ? "registered" : `refused: ${error}`);
        return {};
      },
    });
  }

  async start(): Promise<void> {
    await this.#server.listen(`unix:${this.#socket}`);
  }

  stop(): void {
    this.#server.forceShutdown();
    rmSync(this.#socket, { force: true });
  }

  #call(call: Call): void {
    const fails = this.failing === call;
    this.outcomes.push(`${call} ${fails ? "failed" : "succeeded"}`);
    if (fails) throw new ServerError(Status.UNAVAILABLE, `simulated failure of ${call}`);
  }
}
