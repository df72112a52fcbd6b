import type { Machine } from "../machine/machine.ts";
import { type ApiServer, NODE } from "./api-server.ts";
import type { History } from "./history.ts";
import { theirTaints } from "./settings.ts";

interface Fields {
  labels: Record<string, string>;
  annotations: Record<string, string>;
  taints: { key: string; value?: string; effect: string }[];
}

/** Clients that write labels, annotations and taints of their own on the Node. */
export class OtherWriters {
  readonly #machine: Machine;
  readonly #api: ApiServer;
  readonly #history: History;
  #written: Fields | undefined;
  #version = 0;

  constructor(machine: Machine, api: ApiServer, history: History) {
    this.#machine = machine;
    this.#api = api;
    this.#history = history;
  }

  /** Writes other values than before. Every other time the taints are removed. */
  write(): void {
    const { store } = this.#api;
    const node = store.get("nodes", NODE);
    if (!node) return;
    const fields = fieldsOf(++this.#version);
    const { metadata } = node;
    const spec = (node.spec ?? {}) as Partial<Fields>;
    const kept = (spec.taints ?? []).filter(({ key }) => !theirTaints.includes(key));
    const taints = this.#machine.chance(0.5) ? [...kept, ...fields.taints] : [...fields.taints, ...kept];
    store.put({
      ...node,
      metadata: {
        ...metadata,
        labels: { ...metadata.labels, ...fields.labels },
        annotations: { ...metadata.annotations, ...fields.annotations },
      },
      spec: { ...spec, taints },
    });
    this.#written = fields;
    this.#history.note("other writers", `write version ${this.#version}`);
  }

  /** Returns what is theirs and no longer as they wrote it. */
  changed(): string | undefined {
    if (!this.#written) return undefined;
    const { labels, annotations, taints } = this.#written;
    const { metadata, spec } = this.#api.store.get("nodes", NODE) ?? { metadata: {} };
    const found = ((spec ?? {}) as Partial<Fields>).taints ?? [];
    const theirs = byKey(found.filter(({ key }) => theirTaints.includes(key)));
    const written = byKey(taints);
    const returned = Object.keys(theirs).filter((key) => !(key in written));
    const lost =
      lostOf("label", labels, metadata.labels) ??
      lostOf("annotation", annotations, metadata.annotations) ??
      lostOf("taint", written, theirs) ??
      (returned.length > 0 ? `taint ${returned} is there again` : undefined);
    return lost && `nodes: ${lost}`;
  }
}

function fieldsOf(version: number): Fields {
  const value = `v${version}`;
  return {
    labels: { "example.org/owner": value },
    annotations: { "example.org/note": value },
    taints: version % 2 === 0 ? [] : theirTaints.map((key) => ({ key, value, effect: "NoSchedule" })),
  };
}

function byKey(taints: Fields["taints"]): Record<string, string> {
  return Object.fromEntries(taints.map(({ key, value = "", effect }) => [key, `${value}:${effect}`]));
}

/** Returns the first value that is not as it was written. */
export function lostOf(
  what: string,
  written: Readonly<Record<string, string>> = {},
  found: Readonly<Record<string, string>> = {},
): string | undefined {
  for (const [key, value] of Object.entries(written)) {
    if (found[key] !== value) return `${what} ${key} is ${found[key] ?? "missing"} instead of ${value}`;
  }
  return undefined;
}
