import { EventEmitter } from "node:events";
import { lstatSync } from "node:fs";
import { basename, dirname } from "node:path";
import { machineOf } from "../machine.ts";
import { currentProcess, processIfAny } from "../process.ts";

type Listener = (event: "rename" | "change", file: string | null) => void;

const watchers = new Map<string, Set<Watcher>>();

class Watcher extends EventEmitter {
  readonly #path: string;
  readonly process = currentProcess();
  readonly listener: Listener;
  readonly #offDeath: () => void;

  constructor(path: string, listener: Listener) {
    super();
    this.#path = path;
    this.listener = listener;
    const others = watchers.get(path) ?? new Set();
    watchers.set(path, others.add(this));
    this.#offDeath = this.process.onDeath(() => this.close());
  }

  close(): void {
    this.#offDeath();
    const others = watchers.get(this.#path);
    others?.delete(this);
    if (others?.size === 0) watchers.delete(this.#path);
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }
}

/** `fs.watch`. Throws `ENOENT` if the file does not exist. */
export function watch(path: string, _options: unknown, listener: Listener): Watcher {
  currentProcess().edge();
  lstatSync(path);
  return new Watcher(path, listener);
}

/** Tells watchers of a file and of its directory that it was created, removed, replaced or written. */
export function changed(path: string, event: "rename" | "change"): void {
  const actor = processIfAny();
  if (!actor) return;
  const { changes } = machineOf(actor);
  changes.set(dirname(path), (changes.get(dirname(path)) ?? 0) + 1);
  for (const watched of [dirname(path), path]) {
    for (const watcher of watchers.get(watched) ?? []) {
      const { process, listener } = watcher;
      process.after(machineOf(process).network.weather.localMs(), () => {
        if (watchers.get(watched)?.has(watcher)) listener(event, basename(path));
      });
    }
  }
}
