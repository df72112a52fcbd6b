import type { Machine } from "../machine/machine.ts";
import type { ApiServer } from "./api-server.ts";
import type { BindingDriver } from "./binding-driver.ts";
import { BindingScheduler } from "./binding-scheduler.ts";
import { ClaimChecker } from "./claim-checker.ts";
import type { ClaimScheduler } from "./claim-scheduler.ts";
import type { BindingRates } from "./faults.ts";
import type { History } from "./history.ts";

/** Devices with binding conditions, and everyone who deals with their claims besides the agent. */
export class Binding {
  readonly driver: BindingDriver;
  readonly scheduler: BindingScheduler;
  readonly checker: ClaimChecker;

  constructor(
    machine: Machine,
    history: History,
    {
      api,
      claims,
      driver,
      ...options
    }: {
      api: ApiServer;
      claims: ClaimScheduler;
      driver: BindingDriver;
      replicas: number;
      rates: BindingRates;
    },
  ) {
    this.driver = driver;
    this.scheduler = new BindingScheduler(machine, history, { api, claims, ...options });
    this.checker = new ClaimChecker(machine, history, { api, scheduler: this.scheduler });
  }

  /** From now on nothing fails. If the driver is stuck, pods wait for it as long as it takes. */
  settle(): void {
    this.scheduler.isPatient = this.driver.isStuck;
  }
}
