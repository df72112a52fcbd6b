import { NodekeeperError, parseDuration, parseQuantity } from "@nodekeeper/core/lib";
import type { EvictionPod, QosClass, QosLevel } from "../eviction/index.ts";
import { type FieldTree, nodeFields, podFields } from "./fields.ts";
import type { NodeSnapshot, Part } from "./node-snapshot.ts";
import type { PodUsage } from "./pod-variable.ts";
import { type Scene, ScenePods, type SceneRequests } from "./scene.ts";
import { PlacedError, parseYaml, type YamlFields } from "./yaml-fields.ts";

/** A pod as a scene file describes it; what it leaves out is undefined. */
export interface DescribedPod {
  name: string;
  namespace: string;
  labels?: Record<string, string> | undefined;
  annotationKeys?: string[] | undefined;
  qosClass?: QosClass | undefined;
  qosLevel?: QosLevel | undefined;
  priority?: number | undefined;
  requests?: SceneRequests | undefined;
  usage?: PodUsage | undefined;
  /** Seconds. */
  age?: number | undefined;
  ownerKind?: string | undefined;
}

/** A node and pods, with the fields that expressions have. */
export interface SceneFile {
  node: Record<string, unknown>;
  pods: DescribedPod[];
}

const LONGEST_FILE = 16 * 1024 * 1024;
const MOST_PODS = 10_000;
const MOST_KEYS = 10_000;

/**
 * Reads a YAML or JSON text of `node` and `pods`. Numbers may be quantities ("16Gi"), an age a duration ("2h"). Throws
 * `invalid` with the place.
 */
export function readSceneFile(file: string, text: string): SceneFile {
  try {
    const { fields } = parseYaml(text, LONGEST_FILE, ["node", "pods"]);
    const node = fields.fields("node", Object.keys(nodeFields));
    const pods = fields.fieldsList("pods", MOST_PODS, Object.keys(podFields)) ?? [];
    return { node: node ? readTree(node, nodeFields) : {}, pods: pods.map(readPod) };
  } catch (error) {
    if (!(error instanceof NodekeeperError)) throw error;
    const place = error instanceof PlacedError && error.line > 0 ? `:${error.line}:${error.column}` : "";
    const field = error instanceof PlacedError && error.field !== "" ? `${error.field}: ` : "";
    throw new NodekeeperError("invalid", `${file}${place}: ${field}${error.message}`, { cause: error });
  }
}

/** The scene that a file describes: all of it read at one time, all pods candidates. */
export function sceneOfFile({ node, pods }: SceneFile, at: number): Scene {
  const observed = pods.map((pod) => ({ pod: evictionPod(pod, at), details: {} }));
  const uids = new Set(observed.map(({ pod }) => pod.uid));
  if (uids.size < pods.length)
    throw new NodekeeperError("invalid", "two pods have the same namespace and name");
  return {
    at,
    node: snapshotOf(node, at),
    pods: observed,
    others: [],
    usages: new Map(pods.map((pod) => [uidOf(pod), pod.usage ?? {}])),
    wholePods: new ScenePods(new Map(pods.map((pod) => [uidOf(pod), pod.requests ?? {}]))),
  };
}

/** A snapshot of the fields that are there, read at one time. */
export function snapshotOf(node: Readonly<Record<string, unknown>>, at: number): NodeSnapshot {
  const part = <T>(group: Readonly<Record<string, unknown>>, name: string): Part<T> => {
    const value = group[name];
    return value === undefined ? { missing: "not set in the file" } : { value: value as T, at };
  };
  const psi = (node.psi ?? {}) as Record<string, unknown>;
  return {
    memory: part(node, "memory"),
    psi: { memory: part(psi, "memory"), cpu: part(psi, "cpu"), io: part(psi, "io") },
    cpu: part(node, "cpu"),
    allocatableMemory: part(node, "allocatableMemory"),
    nodefs: part(node, "nodefs"),
    imagefs: part(node, "imagefs"),
    containerfs: part(node, "containerfs"),
    pids: part(node, "pids"),
  };
}

function uidOf({ namespace, name }: DescribedPod): string {
  return `${namespace}/${name}`;
}

function evictionPod(pod: DescribedPod, at: number): EvictionPod {
  const { name, namespace, age, ownerKind = "" } = pod;
  const asks = Object.values(pod.requests ?? {}).some((amount) => amount !== undefined && amount > 0);
  return {
    uid: uidOf(pod),
    namespace,
    name,
    nodeName: "",
    phase: "Running",
    labels: pod.labels ?? {},
    annotationKeys: pod.annotationKeys ?? [],
    owner: ownerKind === "" ? null : { kind: ownerKind, name, uid: "" },
    qosLevel: pod.qosLevel ?? "shared_cores",
    qosClass: pod.qosClass ?? (asks ? "Burstable" : "BestEffort"),
    priority: pod.priority ?? 0,
    priorityClassName: "",
    deletionTimestamp: null,
    startTime: age === undefined ? null : at - age * 1000,
    gracePeriodSeconds: 30,
    isStatic: false,
    isMirror: false,
    softEvictNotify: false,
  };
}

function readPod(fields: YamlFields): DescribedPod {
  const pod = readTree(fields, podFields);
  return { ...pod, name: fields.text("name"), namespace: fields.text("namespace", "default") };
}

function readTree(fields: YamlFields, tree: FieldTree): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  for (const [name, type] of Object.entries(tree)) {
    if (!fields.has(name)) continue;
    if (typeof type === "object") values[name] = readGroup(fields, name, type);
    else if (type === "double") values[name] = fields.parsed(name, name === "age" ? readAge : readAmount);
    else if (type === "string") values[name] = fields.text(name);
    else if (type === "list<string>") values[name] = fields.parsedList(name, MOST_KEYS, (text) => text);
    else values[name] = fields.texts(name);
  }
  return values;
}

function readGroup(fields: YamlFields, name: string, tree: FieldTree): Record<string, unknown> | undefined {
  const group = fields.fields(name, Object.keys(tree));
  return group && readTree(group, tree);
}

function readAmount(text: string): number {
  return Number(parseQuantity(text).nano) / 1e9;
}

// Without a unit it is seconds, as in expressions.
function readAge(text: string): number {
  return /^[\d.]+$/.test(text) ? Number(text) : parseDuration(text) / 1000;
}
