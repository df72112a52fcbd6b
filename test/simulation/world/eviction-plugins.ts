import { type EvictionCondition, type NamedPod, type Plugin, serveEvictionPlugin } from "@nodekeeper/sdk";
import type { Machine } from "../machine/machine.ts";
import type { Process } from "../machine/process.ts";
import {
  type EvictionLie,
  EvictionLies,
  evictionLies,
  type FalseCondition,
  falseConditions,
} from "./eviction-lies.ts";
import type { History, PluginCall } from "./history.ts";
import { PluginActor } from "./plugins.ts";

/** What an instance of an eviction plugin answers from. */
interface Readings {
  pressure: "none" | "soft" | "hard";
  requests: number;
  hasCondition: boolean;
  gracePeriodSeconds: number;
  version: number;
  falsehood: EvictionLie | undefined;
  falseCondition: FalseCondition | undefined;
}

/** Reports pressure by turns, and names pods for it. */
export class EvictionActor extends PluginActor implements Readings {
  readonly type = "EvictionPlugin";
  pressure: Readings["pressure"] = "none";
  /** Share of the offered pods that are requested regardless of thresholds. */
  requests = 0;
  hasCondition = false;
  gracePeriodSeconds = 0;
  /** Each version has another threshold. */
  version = 1;
  /** Undefined if it is honest. */
  falsehood: EvictionLie | undefined;
  /** What it reports if its lies are conditions. */
  falseCondition: FalseCondition | undefined;
  /** Virtual milliseconds at which the pressure became what it is. */
  since = 0;
  readonly #lies: EvictionLies;
  readonly #namesAll: boolean;
  #instances = 0;
  #isReplacedNext = false;

  /**
   * @param allPods returns all pods that ever were
   * @param namesAll whether it names all pods it is offered, however few it is asked for
   */
  constructor(
    machine: Machine,
    history: History,
    name: string,
    allPods: () => Iterable<NamedPod>,
    namesAll = false,
  ) {
    super(machine, history, name);
    this.#namesAll = namesAll;
    this.#lies = new EvictionLies(machine, allPods);
  }

  change(): void {
    const { machine } = this;
    this.pressure = machine.pick(["none", "none", "soft", "hard"]);
    this.requests = machine.chance(0.3) ? machine.random() * 0.5 : 0;
    this.gracePeriodSeconds = machine.pick([0, 0, 5]);
    this.since = machine.scheduler.now;
    this.history.note(this.name, `pressure ${this.pressure}, requests ${this.requests.toFixed(2)}`);
  }

  /** Is replaced by a version with another threshold, for which the pressure is another one. */
  replace(): void {
    this.retire();
    this.version++;
    this.history.note(this.name, `is replaced by version ${this.version}`);
    this.change();
    this.renew();
  }

  /** Is replaced as soon as it has answered, in the middle of a round if others take longer. */
  replaceAtAnswer(): void {
    this.#isReplacedNext = true;
  }

  get isLying(): boolean {
    return this.falsehood !== undefined;
  }

  lie(): void {
    const { machine } = this;
    this.falsehood = machine.pick([undefined, ...evictionLies]);
    this.falseCondition = this.falsehood === "conditions" ? machine.pick(falseConditions) : undefined;
    const condition = this.falseCondition ? ` ${JSON.stringify(this.falseCondition.condition)}` : "";
    this.history.note(
      this.name,
      this.falsehood ? `lies about ${this.falsehood}${condition}` : "tells the truth",
    );
  }

  override settle(): void {
    super.settle();
    this.requests = 0;
    this.#isReplacedNext = false;
    if (!this.isStubborn) this.falsehood = this.falseCondition = undefined;
  }

  get condition(): EvictionCondition {
    return { name: `Pressure${this.name.replaceAll("-", "")}`, effects: ["NoSchedule"] };
  }

  protected serve(process: Process): Plugin {
    const { name, history, machine } = this;
    const instance = ++this.#instances;
    let readings: Readings = this;
    this.retire = () => {
      const { pressure, requests, hasCondition, gracePeriodSeconds, version, falsehood, falseCondition } =
        readings;
      readings = { pressure, requests, hasCondition, gracePeriodSeconds, version, falsehood, falseCondition };
    };
    const called = (method: PluginCall["method"], topN = 0): PluginCall => {
      const at = machine.scheduler.now;
      const asked = { at, plugin: name, method, instance, topN };
      const call = { ...asked, answer: undefined, answeredAt: undefined, graceSeconds: 0 };
      history.pluginCalls.push(call);
      return call;
    };
    return serveEvictionPlugin({
      ...this.optionsFor(process),
      onRegistered: () => history.registrations.push({ at: machine.scheduler.now, plugin: name, instance }),
      thresholdMet: async (_pods, { signal }) => {
        const call = called("ThresholdMet");
        await this.hesitate(process, signal);
        const { pressure, version, gracePeriodSeconds, hasCondition, falsehood } = readings;
        const state = this.#lies.threshold(falsehood, {
          metType: pressure,
          scope: `scope-${name}`,
          observedValue: version + 1,
          thresholdValue: version,
          gracePeriodSeconds,
          ...(hasCondition && pressure !== "none" ? { condition: this.condition } : {}),
        });
        call.graceSeconds = gracePeriodSeconds;
        this.#answered(call, thresholdAsText(state));
        return state;
      },
      getTopEvictionPods: async (pods, asked) => {
        const call = called("GetTopEvictionPods", asked.topN);
        await this.hesitate(process, asked.signal);
        const { falsehood } = readings;
        const isCut = asked.topN > 0 && !this.#namesAll;
        const chosen = isCut ? [...pods].slice(0, asked.topN) : [...pods];
        const named = this.#lies.pods(falsehood, chosen, pods);
        // The SDK would cut the answer to as many.
        if (falsehood || this.#namesAll) asked.topN = 0;
        this.#named(call, pods, named, "top");
        return { pods: named, ...this.#lies.grace(falsehood) };
      },
      getEvictPods: async (pods, { signal }) => {
        const call = called("GetEvictPods");
        await this.hesitate(process, signal);
        const { requests, falsehood, falseCondition } = readings;
        const chosen = pods.filter(() => machine.chance(requests));
        const named = falsehood === "tooMany" ? chosen : this.#lies.pods(falsehood, chosen, pods);
        this.#named(call, pods, named, "requested");
        const requested = named.map((pod) => ({
          pod,
          reason: "the world wants it",
          force: machine.chance(0.7),
          ...this.#lies.grace(falsehood),
        }));
        return { pods: requested, ...(falseCondition ? { condition: falseCondition.condition } : {}) };
      },
    });
  }

  #answered(call: PluginCall, answer: string): void {
    call.answer = answer;
    const { scheduler, init } = this.machine;
    call.answeredAt = scheduler.now;
    if (!this.#isReplacedNext || call.method !== "GetEvictPods") return;
    this.#isReplacedNext = false;
    init.after(0, () => this.replace());
  }

  #named(call: PluginCall, offered: readonly NamedPod[], named: readonly NamedPod[], how: string): void {
    const { machine, history, name } = this;
    const isOffered = (pod: NamedPod) => offered.some((each) => isSame(each, pod));
    const at = machine.scheduler.now;
    for (const pod of named) {
      if (isOffered(pod)) history.namings.push({ at, plugin: name, uid: pod.uid, call });
      else history.falseNamings.push({ at, plugin: name, uid: pod.uid });
    }
    this.#answered(call, namesOf(named));
    const told = named.map((pod) =>
      isOffered(pod) ? pod.name : `${pod.namespace}/${pod.name} (${pod.uid}), not offered`,
    );
    if (named.length > 0) history.note(name, `${how}: ${told.join(", ")}`);
  }
}

function isSame(one: NamedPod, other: NamedPod): boolean {
  return one.uid === other.uid && one.name === other.name && one.namespace === other.namespace;
}

/** Returns the names of pods as text, in a fixed order. */
export function namesOf(pods: readonly { name: string }[]): string {
  return pods
    .map(({ name }) => name)
    .sort()
    .join(" ");
}

/** Returns an answer to ThresholdMet as text. What is not a finite number is recorded as null. */
export function thresholdAsText(answer: {
  metType: string;
  observedValue?: number | null;
  thresholdValue?: number | null;
}): string {
  const { metType, observedValue = 0, thresholdValue = 0 } = answer;
  const shown = (value: number | null) => (value !== null && Number.isFinite(value) ? `${value}` : "null");
  return `${metType} ${shown(observedValue)}/${shown(thresholdValue)}`;
}
