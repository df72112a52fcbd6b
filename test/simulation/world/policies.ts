import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Machine } from "../machine/machine.ts";
import type { History } from "./history.ts";
import type { Host } from "./host.ts";
import { PLENTY } from "./host-memory.ts";
import { Series } from "./series.ts";

const NAME = "low-memory";

/** The one policy of a world: pods are evicted while less than a share of the memory is available. */
interface Policy {
  readonly type: "soft" | "hard";
  /** In percent of the memory. */
  readonly threshold: number;
  /** Beginning of the names of the pods that it may select. */
  readonly selects: string;
  readonly hasCondition: boolean;
}

// The agent looks at its policy files every 10 s. A round that has begun uses what it has read.
const UNTIL_TAKEN_MS = 11_000;

/** The operator's policy file, which is about the memory of the machine. */
export class Policies {
  /** Name of the policy's plugin. */
  readonly plugin = `policy-${NAME}`;
  /** Path of the file. Undefined in worlds without policies. */
  readonly file: string | undefined;
  readonly #machine: Machine;
  readonly #history: History;
  readonly #host: Host;
  /** What was written to the file. A policy that is undefined was removed. */
  readonly #written: Series<Policy | undefined>;

  constructor(machine: Machine, history: History, host: Host, isUsed: boolean) {
    this.#machine = machine;
    this.#history = history;
    this.#host = host;
    this.#written = new Series(() => machine.scheduler.now);
    if (!isUsed) return;
    this.file = join(machine.root, "policies.yaml");
    this.change();
    this.#write(draw(machine));
  }

  /** The condition of the policy, if it is reported now. */
  get condition(): string | undefined {
    const policy = this.#written.last;
    return policy?.hasCondition && isLow(this.#host.memory.readable.last, policy) ? "LowMemory" : undefined;
  }

  /** Writes another policy, none, or what the agent refuses. */
  edit(): void {
    const drawn = this.#machine.random();
    if (drawn < 0.15) this.mistake();
    else this.#write(drawn < 0.3 ? undefined : draw(this.#machine));
  }

  /** Writes what the agent rejects. The last valid policy stays in use. */
  mistake(): void {
    this.#history.note("operator", "writes an invalid policy");
    this.#replace([{ name: NAME, type: "hard", when: "node.memory.totl < 5", rank: ["pod.priority"] }]);
    this.#written.set(this.#written.last);
  }

  /** Corrects a file that the agent rejects. */
  correct(): void {
    if (this.file) this.#write(this.#written.last);
  }

  /** Changes the memory that is available. */
  change(): void {
    this.#host.setMemory(this.#machine.pick([2, 8, 30, PLENTY]));
  }

  /** Returns whether the policy may have selected a pod in a period, in virtual milliseconds. */
  mayAsk(pod: string, from: number, to: number): boolean {
    const available = this.#host.memory.readable.during(from, to);
    return this.#written
      .during(from - UNTIL_TAKEN_MS, to)
      .some(
        (policy) =>
          policy !== undefined &&
          pod.startsWith(policy.selects) &&
          available.some((percent) => isLow(percent, policy)),
      );
  }

  #write(policy: Policy | undefined): void {
    this.#history.note("operator", `writes the policy ${JSON.stringify(policy) ?? "file without policies"}`);
    this.#written.set(policy);
    this.#replace(policy ? [fileOf(policy)] : []);
  }

  #replace(policies: readonly object[]): void {
    const temporary = `${this.file}.new`;
    writeFileSync(temporary, JSON.stringify({ policies }));
    renameSync(temporary, this.file!);
  }
}

function draw(machine: Machine): Policy {
  return {
    type: machine.pick(["soft", "hard"]),
    threshold: machine.pick([5, 10]),
    selects: machine.pick(["", "web-", "train-"]),
    hasCondition: machine.chance(0.5),
  };
}

function fileOf({ type, threshold, selects, hasCondition }: Policy): object {
  return {
    name: NAME,
    type,
    observed: "node.memory.available",
    operator: "lessThan",
    threshold: `percent(${threshold}, node.memory.total)`,
    pods: `pod.name.startsWith("${selects}")`,
    rank: ["-pod.priority"],
    ...(hasCondition ? { condition: { name: "LowMemory", effects: ["NoSchedule"] } } : {}),
  };
}

/** Returns whether less memory is available than a policy wants, in percent. Undefined: it can't be read. */
function isLow(percent: number | undefined, { threshold }: Policy): boolean {
  return percent !== undefined && percent < threshold;
}
