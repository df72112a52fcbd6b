import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { silentLogger } from "@nodekeeper/core/lib";
import type { Plugin, PluginOptions } from "@nodekeeper/sdk";
import { CallSite } from "../../../packages/sdk/src/author-error.ts";
import { ServedPlugin } from "../../../packages/sdk/src/served-plugin.ts";
import type { Machine } from "../machine/machine.ts";
import type { Process } from "../machine/process.ts";
import type { History } from "./history.ts";

/** How a plugin answers. */
const manners = ["honest", "slow", "sometimesSlow", "failing", "hanging"] as const;
type Manner = (typeof manners)[number];

// What comes and goes of a plugin that flaps, several times within seconds.
const flaps = ["process", "socket", "refused"] as const;
const LONGEST_FLAP_MS = 1_500;

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
  /** Whether it lies in the calm too. */
  isStubborn = false;
  /** Whether a new instance is started before the old one ends. */
  protected isRolling = false;
  /** Lets the instance that runs go on as it is now, whatever changes. Set by `serve`. */
  protected retire: () => void = () => {};
  /** Its type, as it registers. */
  abstract readonly type: string;
  #plugin: Plugin | undefined;
  #isSettled = false;
  #isRefused = false;
  // The current run of refused instances, since the first of them.
  #withoutServices: History["withoutServices"][number] | undefined;
  #isNextSlow = false;
  // The instance that another one replaces.
  #old: Process | undefined;

  constructor(machine: Machine, history: History, name: string) {
    this.machine = machine;
    this.history = history;
    this.name = name;
  }

  start(): void {
    const process = this.machine.spawn(this.name);
    this.process = process;
    this.history.note(this.name, "starts");
    if (!this.#isRefused && this.#withoutServices) {
      this.#withoutServices.to = this.machine.scheduler.now;
      this.#withoutServices = undefined;
    }
    this.#plugin = process.run(() => (this.#isRefused ? this.#serveRefused(process) : this.serve(process)));
    process.onDeath(() => {
      this.machine.scheduler.after(this.machine.between(50, 8_000), () => {
        if (this.isWanted && this.process === process) this.machine.init.run(() => this.start());
      });
    });
    const isSlow = this.machine.chance(this.slowStarts) || this.#isNextSlow;
    this.#isNextSlow = false;
    if (isSlow) this.#startSlowly(process);
  }

  get isRegistered(): boolean {
    return this.#plugin?.registration.state === "registered";
  }

  kill(): void {
    this.history.note("fault", `${this.name} killed`);
    this.process?.kill();
  }

  /** Ends for good, and leaves no socket. */
  uninstall(): void {
    const { machine, history, name } = this;
    this.isWanted = false;
    history.note(name, "is uninstalled");
    history.withoutServices.push({ plugin: name, from: machine.scheduler.now, to: Number.POSITIVE_INFINITY });
    this.process?.kill();
    const directory = join(machine.root, "plugins");
    machine.init.run(() => {
      for (const file of readdirSync(directory)) {
        if (file.startsWith(name)) rmSync(join(directory, file), { force: true });
      }
    });
  }

  /** Is and stays honest, unless it is stubborn. */
  settle(): void {
    this.#isSettled = true;
    this.manner = "honest";
    this.slowStarts = 0;
    this.process?.thaw();
    this.#beRefused(false);
  }

  // Its socket is there, and the handshake is late or fails.
  #startSlowly(process: Process): void {
    const { machine, history, name } = this;
    process.after(machine.random() * 5, () => {
      if (this.#isSettled) return;
      history.note("fault", `${name} stops while it starts`);
      history.slowStarts.push({ plugin: name, at: machine.scheduler.now });
      process.freeze();
      machine.scheduler.after(machine.between(1_000, 20_000), () => process.thaw());
    });
  }

  /** Behaves in another way from now on. */
  turn(): void {
    this.manner = this.machine.pick(manners);
    this.history.note(this.name, `is ${this.manner}`);
  }

  abstract get isLying(): boolean;

  /** Says what is not true from now on, or no longer. */
  abstract lie(): void;

  /** Decides whether it supports rolling updates. */
  mayRoll(): void {
    this.isRolling = this.machine.chance(0.5);
  }

  /** Its process or socket comes and goes several times, or its registration is refused in between. */
  flap(): void {
    const { machine, history, name } = this;
    const what = machine.pick(flaps);
    history.note("fault", `${name} flaps: ${what}`);
    let left = machine.between(2, 5);
    const next = () => {
      if (this.#isSettled || !this.isWanted || left-- === 0) return;
      this.#flapOnce(what);
      machine.scheduler.after(machine.between(5, LONGEST_FLAP_MS), () => machine.init.run(next));
    };
    next();
  }

  #flapOnce(what: (typeof flaps)[number]): void {
    // One that was replaced since the last time would be served again.
    this.#old?.kill();
    if (what === "socket") {
      if (this.#plugin) rmSync(this.#plugin.socketPath, { force: true });
    } else if (what === "refused") this.#beRefused(!this.#isRefused);
    else this.#restart();
  }

  #beRefused(isRefused: boolean): void {
    if (this.#isRefused === isRefused) return;
    this.#isRefused = isRefused;
    this.history.note(
      this.name,
      isRefused ? "registers without a version, and is refused" : "registers with its version again",
    );
    if (this.isWanted) this.machine.init.run(() => this.#restart());
  }

  /** Is restarted, and stops for a while during its start. Its old instances end. */
  restartSlowly(): void {
    if (!this.isWanted) return;
    this.#old?.kill();
    this.#isNextSlow = true;
    this.#restart();
  }

  #restart(): void {
    this.process?.kill();
    this.start();
  }

  /** Starts another instance, in a rolling update if the plugin supports that. */
  protected renew(): void {
    const { process: old, machine } = this;
    // One that has not finished its start would register after its successor, and be taken for the newer one.
    if (!this.isRolling || !this.isWanted || !old || old.isDead || old.isFrozen) {
      this.kill();
      return;
    }
    this.#old = old;
    this.start();
    // Nothing that is older is served again once the new one is gone.
    this.process?.onDeath(() => old.kill());
    machine.scheduler.after(machine.between(100, 5_000), () => old.kill());
  }

  /** Options that all plugins of the SDK have. */
  protected optionsFor({ clock }: Process): PluginOptions {
    const socketDir = join(this.machine.root, "plugins");
    return { name: this.name, socketDir, rollingUpdate: this.isRolling, clock, log: silentLogger };
  }

  protected abstract serve(process: Process): Plugin;

  #serveRefused(process: Process): Plugin {
    const { type, name, machine, history } = this;
    if (!this.#withoutServices) {
      this.#withoutServices = { plugin: name, from: machine.scheduler.now, to: Number.POSITIVE_INFINITY };
      history.withoutServices.push(this.#withoutServices);
    }
    // Any version of a driver would be accepted: one that is not known is of a driver that the kubelet calls itself.
    const kind = { type, versions: [], addService: () => {} };
    return new ServedPlugin(this.optionsFor(process), kind, new CallSite(ServedPlugin.prototype.stop));
  }

  /** Waits as long as the plugin's manner says. */
  protected async hesitate(process: Process, signal: AbortSignal): Promise<void> {
    const { machine } = this;
    const slow = this.manner === "slow" || (this.manner === "sometimesSlow" && machine.chance(0.3));
    if (slow) await process.clock.sleep(machine.between(500, 15_000), signal);
    if (this.manner === "hanging") await process.clock.sleep(600_000, signal);
    if (this.manner === "failing") throw new Error("out of order");
  }
}
