import { join } from "node:path";
import { silentLogger } from "@nodekeeper/core/lib";
import {
  type ActivePod,
  customNodeResource,
  metadata,
  node,
  type Plugin,
  type ReportContent,
  serveEvictionPlugin,
  serveReporterPlugin,
  status,
} from "@nodekeeper/sdk";
import type { Machine } from "../machine/machine.ts";
import type { Process } from "../machine/process.ts";
import type { History, PluginCall } from "./history.ts";

/** How a plugin answers. */
const manners = ["honest", "slow", "sometimesSlow", "failing", "hanging"] as const;
type Manner = (typeof manners)[number];

/** A plugin that is started again when its process has ended. */
export abstract class PluginActor {
  readonly name: string;
  readonly machine: Machine;
  readonly history: History;
  manner: Manner = "honest";
  process: Process | undefined;
  isWanted = true;
  /** Share of its starts during which it stops for a while. */
  slowStarts = 0;
  #plugin: Plugin | undefined;

  constructor(machine: Machine, history: History, name: string) {
    this.machine = machine;
    this.history = history;
    this.name = name;
  }

  start(): void {
    const process = this.machine.spawn(this.name);
    this.process = process;
    this.history.note(this.name, "starts");
    this.#plugin = process.run(() => this.serve(process, join(this.machine.root, "plugins")));
    process.onDeath(() => {
      this.machine.scheduler.after(this.machine.between(50, 8_000), () => {
        if (this.isWanted && this.process === process) this.machine.init.run(() => this.start());
      });
    });
    if (this.machine.chance(this.slowStarts)) this.#startSlowly(process);
  }

  get isRegistered(): boolean {
    return this.#plugin?.registration.state === "registered";
  }

  kill(): void {
    this.history.note("fault", `${this.name} killed`);
    this.process?.kill();
  }

  /** Is and stays honest. */
  settle(): void {
    this.manner = "honest";
    this.slowStarts = 0;
    this.process?.thaw();
  }

  // Its socket is there, and the handshake is late or fails.
  #startSlowly(process: Process): void {
    const { machine, history, name } = this;
    process.after(machine.random() * 5, () => {
      if (this.slowStarts === 0) return;
      history.note("fault", `${name} stops while it starts`);
      process.freeze();
      machine.scheduler.after(machine.between(1_000, 20_000), () => process.thaw());
    });
  }

  /** Behaves in another way from now on. */
  turn(): void {
    this.manner = this.machine.pick(manners);
    this.history.note(this.name, `is ${this.manner}`);
  }

  protected abstract serve(process: Process, socketDir: string): Plugin;

  /** Waits as long as the plugin's manner says. */
  protected async hesitate(process: Process, signal: AbortSignal): Promise<void> {
    const { machine } = this;
    const slow = this.manner === "slow" || (this.manner === "sometimesSlow" && machine.chance(0.3));
    if (slow) await process.clock.sleep(machine.between(500, 15_000), signal);
    if (this.manner === "hanging") await process.clock.sleep(600_000, signal);
    if (this.manner === "failing") throw new Error("out of order");
  }
}

/** Reports a value of its own on the CustomNodeResource and the Node. Sometimes withdraws it. */
export class Reporter extends PluginActor {
  /** All it has reported, in order. Undefined: it withdrew its value. */
  readonly reports: (number | undefined)[] = [0];
  #changed = () => {};

  /** What it reports now. */
  get value(): number | undefined {
    return this.reports.at(-1);
  }

  change(): void {
    if (this.machine.chance(0.2)) this.#report(undefined);
    else this.report();
  }

  /** Reports another value. */
  report(): void {
    this.#report(this.reports.length);
  }

  #report(value: number | undefined): void {
    this.reports.push(value);
    this.history.note(this.name, `reports ${this.value ?? "nothing"}`);
    const changed = this.#changed;
    this.process?.after(0, changed);
  }

  #contents(): ReportContent[] {
    const { name, value } = this;
    if (value === undefined) return [];
    return [
      customNodeResource(status("resources", { capacity: { [`widgets.example/${name}`]: `${value}` } })),
      node(metadata("labels", { [`example.dev/${name}`]: `v${value}` })),
    ];
  }

  protected serve(process: Process, socketDir: string): Plugin {
    const actor = this;
    async function* report(signal: AbortSignal): AsyncGenerator<ReportContent[]> {
      while (!signal.aborted) {
        yield actor.#contents();
        await new Promise<void>((resolve) => {
          actor.#changed = resolve;
        });
      }
    }
    return serveReporterPlugin({
      name: this.name,
      socketDir,
      report,
      clock: process.clock,
      log: silentLogger,
    });
  }
}

/** Reports pressure by turns, and names pods for it. */
export class EvictionActor extends PluginActor {
  pressure: "none" | "soft" | "hard" = "none";
  /** Share of the offered pods that are requested regardless of thresholds. */
  requests = 0;
  hasCondition = false;
  gracePeriodSeconds = 0;
  /** Virtual milliseconds at which the pressure became what it is. */
  since = 0;

  change(): void {
    const { machine } = this;
    this.pressure = machine.pick(["none", "none", "soft", "hard"]);
    this.requests = machine.chance(0.3) ? machine.random() * 0.5 : 0;
    this.gracePeriodSeconds = machine.pick([0, 0, 5]);
    this.since = machine.scheduler.now;
    this.history.note(this.name, `pressure ${this.pressure}, requests ${this.requests.toFixed(2)}`);
  }

  override settle(): void {
    super.settle();
    this.requests = 0;
  }

  get condition() {
    return { name: `Pressure${this.name.replaceAll("-", "")}`, effects: ["NoSchedule"] };
  }

  protected serve(process: Process, socketDir: string): Plugin {
    return serveEvictionPlugin({
      name: this.name,
      socketDir,
      clock: process.clock,
      log: silentLogger,
      thresholdMet: async (_pods, { signal }) => {
        const call = this.#called("ThresholdMet");
        await this.hesitate(process, signal);
        call.answer = this.pressure;
        return {
          metType: this.pressure,
          scope: `scope-${this.name}`,
          observedValue: 2,
          thresholdValue: 1,
          gracePeriodSeconds: this.gracePeriodSeconds,
          ...(this.hasCondition && this.pressure !== "none" ? { condition: this.condition } : {}),
        };
      },
      getTopEvictionPods: async (pods, { signal, topN }) => {
        const call = this.#called("GetTopEvictionPods");
        await this.hesitate(process, signal);
        const chosen = topN > 0 ? [...pods].slice(0, topN) : [...pods];
        call.answer = namesOf(chosen);
        return this.#named(chosen, "top");
      },
      getEvictPods: async (pods, { signal }) => {
        const call = this.#called("GetEvictPods");
        await this.hesitate(process, signal);
        const chosen = pods.filter(() => this.machine.chance(this.requests));
        call.answer = namesOf(chosen);
        return this.#named(chosen, "requested").map((pod) => ({
          pod,
          reason: "the world wants it",
          force: this.machine.chance(0.7),
        }));
      },
    });
  }

  #called(method: PluginCall["method"]): PluginCall {
    const call = { at: this.machine.scheduler.now, plugin: this.name, method, answer: undefined };
    this.history.pluginCalls.push(call);
    return call;
  }

  #named(pods: ActivePod[], how: string): ActivePod[] {
    const { machine, history, name } = this;
    for (const { uid } of pods) history.namings.push({ at: machine.scheduler.now, plugin: name, uid });
    if (pods.length > 0) history.note(name, `${how}: ${pods.map((pod) => pod.name).join(", ")}`);
    return pods;
  }
}

/** Returns the names of pods as text, in a fixed order. */
export function namesOf(pods: readonly { name: string }[]): string {
  return pods
    .map(({ name }) => name)
    .sort()
    .join(" ");
}
