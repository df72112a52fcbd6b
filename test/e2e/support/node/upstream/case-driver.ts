import { join } from "node:path";
import type { DevicePool } from "@nodekeeper/sdk";
import type { AgentProcess } from "../../agent-process.ts";
import { ClaimDriver } from "../claim-driver.ts";
import { CountedSocket } from "./counted-socket.ts";
import { SplitRegistration } from "./split-registration.ts";

type Call = "prepare" | "unprepare";
export type Outcome = `${Call} ${"called" | "failed" | "succeeded"}`;

export interface CaseDriverOptions {
  devices?: DevicePool["devices"];
  /** A directory for the driver's socket: then it registers on another socket, as upstream's cases with two sockets. */
  ownDirectory?: string;
  /** Whether connections to that socket are counted. */
  counted?: boolean;
}

const fourDevices = Array.from({ length: 4 }, (_, at) => ({ name: `device-${at}` }));

/** A driver on the TypeScript SDK whose calls fail or wait as a case says, and that records how each one ended. */
export class CaseDriver {
  readonly name: string;
  readonly outcomes: Outcome[] = [];
  /** Separate from the driver's socket, if it has two. */
  readonly registration: SplitRegistration | undefined;
  /** The call that fails. */
  failing: Call | undefined;
  readonly #agent: AgentProcess;
  readonly #devices: NonNullable<DevicePool["devices"]>;
  readonly #socketPath: string | undefined;
  readonly #counted: CountedSocket | undefined;
  #served: ClaimDriver | undefined;
  #held: { call: Call; release: PromiseWithResolvers<void> } | undefined;

  constructor(agent: AgentProcess, name: string, { devices, ownDirectory, counted }: CaseDriverOptions = {}) {
    this.#agent = agent;
    this.name = name;
    this.#devices = devices ?? fourDevices;
    if (!ownDirectory) return;
    this.#socketPath = join(ownDirectory, `${name}.sock`);
    if (counted) this.#counted = new CountedSocket(`${this.#socketPath}.counted`, this.#socketPath);
    const endpoint = this.#counted?.path ?? this.#socketPath;
    this.registration = new SplitRegistration(agent.pluginDirectory, name, endpoint);
  }

  async start(): Promise<void> {
    const { name } = this;
    this.#served = new ClaimDriver({
      name,
      socketDir: this.#agent.pluginDirectory,
      ...(this.#socketPath ? { socketPath: this.#socketPath } : {}),
      pool: { devices: this.#devices },
      onPrepare: () => this.#call("prepare"),
      onUnprepare: () => this.#call("unprepare"),
    });
    await this.#served.ready;
    await this.#counted?.start();
  }

  /** Stops the service; a separate registration stays. */
  async stop(): Promise<void> {
    await this.#served?.stop();
    this.#served = undefined;
  }

  /** Stops everything, also a separate registration. */
  async end(): Promise<void> {
    this.relent();
    this.registration?.stop();
    this.#counted?.stop();
    await this.stop();
  }

  setUnhealthy(...devices: readonly string[]): void {
    this.#served?.setUnhealthy(...devices);
  }

  /** Leaves calls unanswered until `relent`. */
  hold(call: Call): void {
    this.#held = { call, release: Promise.withResolvers() };
  }

  /** Answers held calls, and fails no further ones. */
  relent(): void {
    this.failing = undefined;
    this.#held?.release.resolve();
    this.#held = undefined;
  }

  count(outcome: Outcome): number {
    return this.outcomes.filter((each) => each === outcome).length;
  }

  /** UIDs of claims that are prepared in the instance that runs. */
  get prepared(): string[] {
    return [...(this.#served?.prepared.keys() ?? [])];
  }

  /** Share IDs in the last call of `prepare`. */
  get shareIds(): Array<string | undefined> {
    return this.#served?.calls.at(-1)?.devices.map(({ shareId }) => shareId) ?? [];
  }

  /** How many connections the agent has used to the separate socket so far. */
  get connections(): number {
    return this.#counted?.used ?? 0;
  }

  async #call(call: Call): Promise<void> {
    this.outcomes.push(`${call} called`);
    if (this.#held?.call === call) await this.#held.release.promise;
    if (this.failing === call) {
      this.outcomes.push(`${call} failed`);
      throw new Error(`simulated failure of ${call}`);
    }
    this.outcomes.push(`${call} succeeded`);
  }
}
