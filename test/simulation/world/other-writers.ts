import type { Machine } from "../machine/machine.ts";
import { type ApiServer, CNRS, NODE } from "./api-server.ts";
import type { History } from "./history.ts";
import { theirTaints } from "./settings.ts";

interface Fields {
  labels: Record<string, string>;
  annotations: Record<string, string>;
  capacity: Record<string, string>;
  taints: { key: string; value?: string; effect: string }[];
}

interface Status {
  resources?: { capacity?: Record<string, string> };
}

const objects = ["nodes", CNRS] as const;

/** Clients that write labels, annotations, capacity and taints of their own on the objects that the agent writes too. */
export class OtherWriters {
  readonly #machine: Machine;
  readonly #api: ApiServer;
  readonly #history: History;
  /** What is theirs on each object that they have written. */
  readonly #written = new Map<string, Fields>();
  #version = 0;

  constructor(machine: Machine, api: ApiServer, history: History) {
    this.#machine = machine;
    this.#api = api;
    this.#history = history;
  }

  /** Writes other values than before. Every other time the taints are removed. */
  write(): void {
    const { store } = this.#api;
    const fields = fieldsOf(++this.#version);
    for (const resource of objects) {
      const live = store.get(resource, NODE);
      if (!live) continue;
      const { metadata, spec = {} } = live as typeof live & { spec?: Partial<Fields> };
      const status = (live.status ?? {}) as Status;
      const labels = { ...metadata.labels, ...fields.labels };
      const annotations = { ...metadata.annotations, ...fields.annotations };
      const kept = (spec.taints ?? []).filter(({ key }) => !theirTaints.includes(key));
      // The taints of a CustomNodeResource are of another type.
      const isNode = resource === "nodes";
      const taints = isNode
        ? { taints: this.#machine.chance(0.5) ? [...kept, ...fields.taints] : [...fields.taints, ...kept] }
        : {};
      const capacity = { ...status.resources?.capacity, ...fields.capacity };
      // The kubelet writes that of the Node.
      const resources = isNode ? {} : { status: { ...status, resources: { ...status.resources, capacity } } };
      store.put({
        ...{ ...live, ...resources, metadata: { ...metadata, labels, annotations } },
        spec: { ...spec, ...taints },
      });
      this.#written.set(resource, isNode ? { ...fields, capacity: {} } : { ...fields, taints: [] });
    }
    this.#history.note("other writers", `write version ${this.#version}`);
  }

  /** Returns what is theirs and no longer as they wrote it. */
  changed(): string | undefined {
    for (const [resource, { labels, annotations, capacity, taints }] of this.#written) {
      const { metadata, spec, status } = this.#api.store.get(resource, NODE) ?? { metadata: {} };
      const found = ((spec ?? {}) as Partial<Fields>).taints ?? [];
      const theirs = found.filter(({ key }) => theirTaints.includes(key));
      const lost =
        differs("label", labels, metadata.labels) ??
        differs("annotation", annotations, metadata.annotations) ??
        differs("capacity", capacity, ((status ?? {}) as Status).resources?.capacity) ??
        differs("taint", byKey(taints), byKey(theirs));
      if (lost !== undefined) return `${resource}: ${lost}`;
    }
    return undefined;
  }
}

/** A resource of another client in the CustomNodeResource. */
export const THEIR_RESOURCE = "example.org/cores";

function fieldsOf(version: number): Fields {
  const value = `v${version}`;
  return {
    labels: { "example.org/owner": value },
    annotations: { "example.org/note": value },
    capacity: { [THEIR_RESOURCE]: `${version}` },
    taints: version % 2 === 0 ? [] : theirTaints.map((key) => ({ key, value, effect: "NoSchedule" })),
  };
}

function byKey(taints: Fields["taints"]): Record<string, string> {
  return Object.fromEntries(taints.map(({ key, value = "", effect }) => [key, `${value}:${effect}`]));
}

function differs(
  what: string,
  wanted: Readonly<Record<string, string>>,
  found: Readonly<Record<string, string>> = {},
): string | undefined {
  const keys =
    what === "taint" ? new Set([...Object.keys(wanted), ...Object.keys(found)]) : Object.keys(wanted);
  for (const key of keys) {
    if (found[key] !== wanted[key])
      return `${what} ${key} is ${found[key] ?? "missing"} instead of ${wanted[key] ?? "missing"}`;
  }
  return undefined;
}
