import type { EvictionPod, QosClass, QosLevel } from "@nodekeeper/api/decide";
import { PolicyRefused } from "@nodekeeper/api/errors";
import { NodekeeperError, parseDuration, parseQuantity } from "@nodekeeper/core/lib";
import { describeAt, parseYaml, YamlError, type YamlValue } from "@nodekeeper/core/yaml";
import { type FieldTree, type FieldType, nodeFields, podFields, type ValuesOf } from "./fields.ts";
import type { NodeSnapshot, Part } from "./node-snapshot.ts";
import { detailsWith, type Scene } from "./scene.ts";

/** A pod as described in a scene file. Omitted fields are undefined. */
export interface DescribedPod extends Omit<ValuesOf<typeof podFields>, "qosClass" | "qosLevel"> {
  name: string;
  namespace: string;
  qosClass?: QosClass | undefined;
  qosLevel?: QosLevel | undefined;
}

/** A node and pods, with the fields that expressions can read. */
export interface SceneFile {
  node: Record<string, unknown>;
  pods: DescribedPod[];
}

const LONGEST_FILE = 16 * 1024 * 1024;
const MOST_PODS = 10_000;
const MOST_KEYS = 10_000;

/**
 * Reads `node` and `pods` from a YAML or JSON text. Numbers may be quantities ("16Gi"), and an age may be a
 * duration ("2h"). Throws `invalid` with the position.
 */
export function readSceneFile(file: string, text: string): SceneFile {
  try {
    const { root, problems } = parseYaml(text, LONGEST_FILE);
    if (!root) throw problems[0];
    const fields = root.fields(["node", "pods"]);
    const node = fields.get("node");
    return {
      node: node ? readTree(node, nodeFields) : {},
      pods: (fields.get("pods")?.items(MOST_PODS) ?? []).map(readPod),
    };
  } catch (error) {
    if (!(error instanceof YamlError)) throw error;
    throw new PolicyRefused(
      { problem: describeAt(file, error.place, error.path, error.message) },
      { cause: error },
    );
  }
}

/**
 * Returns the scene that a file describes. Everything is read at the same time, and all pods are candidates.
 */
export function sceneOfFile({ node, pods }: SceneFile, at: number): Scene {
  const observed = pods.map((pod) => ({
    pod: evictionPod(pod, at),
    details: detailsWith(pod.requests ?? {}),
  }));
  const uids = new Set(observed.map(({ pod }) => pod.uid));
  if (uids.size < pods.length)
    throw new NodekeeperError("invalid", "two pods have the same namespace and name");
  return {
    at,
    node: snapshotOf(node, at),
    pods: observed,
    others: [],
    usages: new Map(pods.map((pod) => [uidOf(pod), pod.usage ?? {}])),
  };
}

/** Returns a snapshot of the fields in the file, all read at the same time. */
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

function readPod(written: YamlValue): DescribedPod {
  const pod = readTree(written, podFields);
  const name = written.fields(Object.keys(podFields)).need("name").text();
  return { ...pod, name, namespace: (pod.namespace as string | undefined) ?? "default" };
}

function readTree(written: YamlValue, tree: FieldTree): Record<string, unknown> {
  const fields = written.fields(Object.keys(tree));
  return Object.fromEntries(
    Object.entries(tree).flatMap(([name, type]) => {
      const value = fields.get(name);
      return value ? [[name, readField(value, name, type)]] : [];
    }),
  );
}

function readField(value: YamlValue, name: string, type: FieldType | FieldTree): unknown {
  if (typeof type === "object") return readTree(value, type);
  switch (type) {
    case "double":
      return value.parse(name === "age" ? readAge : readAmount);
    case "string":
      return value.text();
    case "list<string>":
      return value.items(MOST_KEYS).map((item) => item.parse((text) => text));
    case "map<string, string>":
      return value.texts();
  }
}

function readAmount(text: string): number {
  return Number(parseQuantity(text).nano) / 1e9;
}

// Without a unit, the age is in seconds, as in expressions.
function readAge(text: string): number {
  return /^[\d.]+$/.test(text) ? Number(text) : parseDuration(text) / 1000;
}
