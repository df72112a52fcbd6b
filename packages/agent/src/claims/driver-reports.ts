import { DeviceStatusNotWritten } from "@nodekeeper/api/errors";
import {
  DeviceBindingDefinition,
  DeviceHealthReportDefinition,
  DeviceStatusReportDefinition,
} from "@nodekeeper/core/gen/nodekeeper/devices/v1alpha2/preparation.ts";
import { Backoff, type Clock, type Logger, retryPolicies } from "@nodekeeper/core/lib";
import { type DeviceSettings, serviceOf, type TaintReasons } from "../devices/index.ts";
import type { PluginRegistration } from "../plugins/index.ts";
import type { AllocationReports } from "./allocation-reports.ts";
import type { ClaimProblems } from "./claim-problems.ts";
import type { DriverClient } from "./driver-client.ts";
import { DriverHealth } from "./driver-health.ts";
import { type StatusSink, type StatusStream, statusStream } from "./status-stream.ts";

export interface DriverReportsOptions {
  /** Name of the pool whose name is empty in health reports. */
  nodeName: string;
  settings: () => DeviceSettings;
  statuses: StatusSink;
  allocations: Pick<AllocationReports, "tell" | "forgotten">;
  problems: Pick<ClaimProblems, "report">;
  clock: Clock;
  log: Logger;
}

// The deadline of ReportAllocations.
const MOST_WAIT_MS = 10_000;

/** What a driver reports of its devices. It is kept across connections. */
export interface Reports {
  /** Undefined if the driver reports no health. */
  health?: DriverHealth | undefined;
  /** Undefined if the driver does not report the status of allocated devices. */
  statusReport?: StatusStream | undefined;
}

interface Reporter extends Reports {
  name: string;
  setReasons: (change: Partial<TaintReasons>) => void;
}

/** What a registered driver serves. */
interface Served extends Pick<PluginRegistration, "endpoint" | "versions"> {
  /** Undefined if it does not prepare devices. */
  client: Pick<DriverClient, "restored"> | undefined;
}

/** Follows the reports of connected drivers, and starts reporting allocations to them. */
export class DriverReports {
  readonly #options: DriverReportsOptions;
  readonly #tasks = new Set<Promise<void>>();

  constructor(options: DriverReportsOptions) {
    this.#options = options;
  }

  /**
   * Starts to follow the reports that a connected driver serves, until the signal aborts, and ends reports that it no
   * longer serves. Returns the state of its reports.
   */
  follow(driver: Reporter, served: Served, signal: AbortSignal): Reports {
    const { allocations } = this.#options;
    const service = serviceOf(served.versions, DeviceBindingDefinition);
    const told = Promise.withResolvers<void>();
    const statusReport = this.#status(driver, served, service ? told.promise : undefined, signal);
    if (statusReport && service) {
      const onTold = (isNew: boolean) => {
        told.resolve();
        if (isNew) statusReport.reopen();
      };
      const target = { driver: driver.name, endpoint: served.endpoint, service };
      this.#track(allocations.tell(target, onTold, signal));
    } else allocations.forgotten(driver.name);
    return { health: this.#health(driver, served, signal), statusReport };
  }

  #health(
    { name: driver, health: before, setReasons }: Reporter,
    { endpoint, versions }: Served,
    signal: AbortSignal,
  ): DriverHealth | undefined {
    const { nodeName, problems, clock, log } = this.#options;
    const service = serviceOf(versions, DeviceHealthReportDefinition);
    if (service === undefined) {
      if (!before) return undefined;
      before.end();
      setReasons({ byDevice: new Map() });
      problems.report(driver, "health", []);
      return undefined;
    }
    const health =
      before ??
      new DriverHealth({
        driver,
        nodeName,
        onChange: (byDevice) => setReasons({ byDevice }),
        onRefused: (refused) => problems.report(driver, "health", refused),
        clock,
        log,
      });
    this.#track(health.follow(endpoint, service, signal));
    return health;
  }

  #status(
    { name: driver, statusReport: before }: Reporter,
    { endpoint, versions, client }: Served,
    told: Promise<void> | undefined,
    signal: AbortSignal,
  ): StatusStream | undefined {
    const { settings, statuses, log } = this.#options;
    const { deviceStatus } = settings().kubeletPlugin;
    const service = serviceOf(versions, DeviceStatusReportDefinition);
    if (service === undefined || !deviceStatus) {
      if (service !== undefined)
        log.info(
          { errorId: DeviceStatusNotWritten.id, driver },
          "the driver reports the status of devices, which is not written: devices.kubeletPlugin.deviceStatus is false",
        );
      statuses.withdrawn(driver);
      return undefined;
    }
    const status = before ?? statusStream(driver, this.#options);
    this.#track(
      this.#informed(client, told, signal).then(
        () => status.follow(endpoint, service, signal),
        () => {},
      ),
    );
    return status;
  }

  // A driver that does not know its claims yet would report no status for them. If allocations can't be
  // reported to it, it still reports the status of prepared claims.
  async #informed(
    client: Served["client"],
    told: Promise<void> | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    await this.#restored(client, signal);
    if (told) await Promise.race([told, this.#options.clock.sleep(MOST_WAIT_MS, signal)]);
  }

  async #restored(client: Served["client"], signal: AbortSignal): Promise<void> {
    const backoff = new Backoff(retryPolicies.driverReports);
    for (;;)
      try {
        return await client?.restored(signal);
      } catch {
        signal.throwIfAborted();
        // The claims are restored again before the next call that prepares or unprepares.
        await this.#options.clock.sleep(backoff.next(), signal);
      }
  }

  /** Resolves when nothing is followed any more. */
  async ended(): Promise<void> {
    await Promise.all(this.#tasks);
  }

  #track(work: Promise<void>): void {
    const task = work.finally(() => this.#tasks.delete(task));
    this.#tasks.add(task);
  }
}
