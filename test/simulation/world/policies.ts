import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Machine } from "../machine/machine.ts";
import type { History } from "./history.ts";

const TOTAL_KB = 16 * 1024 * 1024;
const NAME = "low-memory";
// In percent of the memory: above all thresholds.
const PLENTY = 60;

/** The one policy of a world: pods are evicted while less than a share of the memory is available. */
interface Policy {
  readonly type: "soft" | "hard";
  /** In percent of the memory. */
  readonly threshold: number;
  /** Beginning of the names of the pods that it may select. */
  readonly selects: string;
  readonly hasCondition: boolean;
}

/** Something that changed at a time, in virtual milliseconds. */
interface Since<T> {
  readonly at: number;
  readonly value: T;
}

// The agent looks at its policy files every 10 s. A round that has begun uses what it has read.
const UNTIL_TAKEN_MS = 11_000;

/** The operator's policy file, and the memory of the machine that it is about. */
export class Policies {
  /** Name of the policy's plugin. */
  readonly plugin = `policy-${NAME}`;
  /** Path of the file. Undefined in worlds without policies. */
  readonly file: string | undefined;
  readonly #machine: Machine;
  readonly #history: History;
  readonly #host: string;
  /** What was written to the file. A policy that is undefined was removed. */
  readonly #written: Since<Policy | undefined>[] = [];
  /** Available memory, in percent. */
  readonly #available: Since<number>[] = [];

  constructor(machine: Machine, history: History, isUsed: boolean) {
    this.#machine = machine;
    this.#history = history;
    this.#host = join(machine.root, "host/proc");
    if (!isUsed) return;
    this.file = join(machine.root, "policies.yaml");
    mkdirSync(this.#host, { recursive: true });
    this.change();
    this.#write(draw(machine));
  }

  /** The condition of the policy, if it is reported now. */
  get condition(): string | undefined {
    const policy = this.#written.at(-1)?.value;
    return policy?.hasCondition && this.#available.at(-1)!.value < policy.threshold ? "LowMemory" : undefined;
  }

  /** Writes another policy, none, or what the agent refuses. */
  edit(): void {
    const drawn = this.#machine.random();
    if (drawn < 0.15) {
      // The last valid policy stays in use.
      this.#history.note("operator", "writes an invalid policy");
      this.#replace([{ name: NAME, type: "hard", when: "node.memory.totl < 5", rank: ["pod.priority"] }]);
      this.#written.push({ at: this.#machine.scheduler.now, value: this.#written.at(-1)!.value });
    } else this.#write(drawn < 0.3 ? undefined : draw(this.#machine));
  }

  /** Corrects a file that the agent refuses. */
  correct(): void {
    if (this.file) this.#write(this.#written.at(-1)!.value);
  }

  /** Changes the memory that is available. */
  change(): void {
    this.#change(this.#machine.pick([2, 8, 30, PLENTY]));
  }

  /** Makes so much memory available that no policy selects pods. */
  relieve(): void {
    if (this.file) this.#change(PLENTY);
  }

  /** Returns whether the policy may have selected a pod in a period, in virtual milliseconds. */
  mayAsk(pod: string, from: number, to: number): boolean {
    const least = Math.min(...during(this.#available, from, to));
    return during(this.#written, from - UNTIL_TAKEN_MS, to).some(
      (policy) => policy !== undefined && least < policy.threshold && pod.startsWith(policy.selects),
    );
  }

  #change(available: number): void {
    this.#available.push({ at: this.#machine.scheduler.now, value: available });
    this.#history.note("host", `${available} % of the memory is available`);
    const kb = Math.floor((TOTAL_KB * available) / 100);
    const lines = [`MemTotal: ${TOTAL_KB} kB`, `MemFree: ${kb} kB`, `MemAvailable: ${kb} kB`];
    writeFileSync(join(this.#host, "meminfo"), `${lines.join("\n")}\n`);
  }

  #write(policy: Policy | undefined): void {
    this.#history.note("operator", `writes the policy ${JSON.stringify(policy) ?? "file without policies"}`);
    this.#written.push({ at: this.#machine.scheduler.now, value: policy });
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

/** Returns the values that held at any time of a period. */
function during<T>(all: readonly Since<T>[], from: number, to: number): T[] {
  return all
    .filter(({ at }, index) => at <= to && (all[index + 1]?.at ?? Number.POSITIVE_INFINITY) >= from)
    .map(({ value }) => value);
}
