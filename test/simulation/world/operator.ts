import type { Machine } from "../machine/machine.ts";
import type { History } from "./history.ts";
import { KEEP_LABEL, type Settings, stoppingRules, taintPrefixes } from "./settings.ts";

/** Settings that were in force, and since when, in virtual milliseconds. */
interface InForce {
  readonly at: number;
  readonly settings: Settings;
}

/** The agent, as its operator deals with it. */
interface OperatedAgent {
  /** Replaces the configuration file. */
  configure(settings: Settings | undefined): void;
  /** What SIGHUP does. */
  reload(): void;
  stop(): void;
}

/** An operator who edits the agent's configuration file while the agent runs. */
export class Operator {
  /** All settings that an agent has had, oldest first. The first are those of the first start. */
  readonly inForce: InForce[];
  /** The settings of the file; undefined while it is invalid. */
  written: Settings | undefined;
  /** Virtual milliseconds at which the file was written last. */
  writtenAt = 0;
  readonly #machine: Machine;
  readonly #history: History;
  readonly #agent: () => OperatedAgent;
  readonly #changes: readonly Change[];
  #valid: Settings;

  /**
   * @param agent returns the agent, which is created later
   * @param stopsContainers whether the operator may also have the agent stop containers
   */
  constructor(
    machine: Machine,
    history: History,
    settings: Settings,
    agent: () => OperatedAgent,
    stopsContainers: boolean,
  ) {
    this.#changes = stopsContainers ? [...changes, ...killerChanges] : changes;
    this.#machine = machine;
    this.#history = history;
    this.#agent = agent;
    this.#valid = settings;
    this.written = settings;
    this.inForce = [{ at: 0, settings }];
  }

  /** The settings that are in force. */
  get settings(): Settings {
    return this.inForce.at(-1)!.settings;
  }

  /** Returns the settings that were in force at any time of a period, in virtual milliseconds. */
  between(from: number, to: number): Settings[] {
    return this.inForce
      .filter(({ at }, index) => at <= to && (this.inForce[index + 1]?.at ?? to) >= from)
      .map(({ settings }) => settings);
  }

  /**
   * Records that the agent has taken the settings of the file. At a start all of them, later those that are live.
   * @param read the settings as the agent has read them
   */
  taken(read: Settings | undefined, isStart: boolean): void {
    const { taintPrefix } = this.settings;
    const settings = read && (isStart ? read : { ...read, taintPrefix });
    if (!settings) return;
    this.inForce.push({ at: this.#machine.scheduler.now, settings });
    this.#history.note("agent", `${isStart ? "starts" : "goes on"} with ${JSON.stringify(settings)}`);
  }

  /** Changes one setting, or makes a mistake that is corrected soon. */
  edit(): void {
    const machine = this.#machine;
    if (machine.chance(0.1)) {
      this.mistake();
      machine.scheduler.after(machine.between(500, 15_000), () => machine.init.run(() => this.correct()));
      return;
    }
    const change = machine.pick(this.#changes)(machine);
    this.#valid = { ...this.#valid, ...change };
    this.#write(this.#valid, JSON.stringify(change));
    if (machine.chance(0.2)) this.#agent().reload();
    const restarts = "taintPrefix" in change || machine.chance(0.1);
    if (restarts) machine.scheduler.after(machine.between(0, 5_000), () => this.#agent().stop());
  }

  /** Writes what the agent rejects. */
  mistake(): void {
    this.#write(undefined, "an invalid file");
  }

  /** Writes the last valid settings again, if the file is invalid. */
  correct(): void {
    if (!this.written) this.#write(this.#valid, "what was there before");
  }

  #write(settings: Settings | undefined, what: string): void {
    this.#history.note("operator", `writes ${what} to the configuration file`);
    this.written = settings;
    this.writtenAt = this.#machine.scheduler.now;
    this.#agent().configure(settings);
  }
}

type Change = (machine: Machine) => Partial<Settings>;

const changes: readonly Change[] = [
  (machine) => ({ limitPerNode: machine.pick([0, 1, 3, 10]) }),
  (machine) => ({ limitPerOwner: machine.pick([0, 1, 2]) }),
  (machine) => ({ limitWindowMs: machine.pick([30, 120, 600]) * 1_000 }),
  (machine) => ({ syncPeriodMs: machine.pick([1_000, 2_000, 5_000]) }),
  (machine) => ({ burst: machine.pick([-1, 1, 3]) }),
  (machine) => ({ cooldownS: machine.pick([0, 5, 10]) }),
  (machine) => ({ transitionS: machine.pick([5, 20]) }),
  (machine) => ({ dryRunPlugins: machine.pick([[], ["*"], ["pressure-0"], ["*", "-pressure-0"]]) }),
  (machine) => ({ dryRunPlugins: machine.pick([[], ["*"]]) }),
  (machine) => ({ skipLabels: machine.pick([[], [KEEP_LABEL]]) }),
  (machine) => ({ killer: machine.pick(["evictionApi", "deletion"] as const) }),
  (machine) => ({ taintPrefix: machine.pick(taintPrefixes) }),
];

const killerChanges: readonly Change[] = [
  (machine) => ({ killer: machine.pick(["evictionApi", "containerStop"] as const) }),
  (machine) => ({ killer: machine.pick(["deletion", "containerStop"] as const) }),
  (machine) => ({ killerRules: machine.pick([[], ...stoppingRules]) }),
  (machine) => ({ killerRules: machine.pick(stoppingRules) }),
];
