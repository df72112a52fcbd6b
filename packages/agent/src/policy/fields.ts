/**
 * Types of fields: a number (bytes, seconds, CPUs), a string, a list of strings, or a map from strings to
 * strings.
 */
export type FieldType = "double" | "string" | "list<string>" | "map<string, string>";

/** Fields of a variable by name. A nested tree is a group of fields. */
export interface FieldTree {
  readonly [name: string]: FieldType | FieldTree;
}

/** The values of a tree of fields. Unknown ones are undefined. */
export type ValuesOf<Tree> = { -readonly [Name in keyof Tree]?: ValueOf<Tree[Name]> | undefined };

interface ValueTypes {
  double: number;
  string: string;
  "list<string>": string[];
  "map<string, string>": Record<string, string>;
}
type ValueOf<Field> = Field extends FieldType ? ValueTypes[Field] : ValuesOf<Field>;

/** Percentages of time in which tasks were stalled (0 to 100). */
const stall = { avg10: "double", avg60: "double", avg300: "double" } as const;
const pressure = { some: stall, full: stall } as const;
/** Bytes and inodes. A filesystem that allocates inodes dynamically reports no inodes. */
const filesystem = {
  capacity: "double",
  available: "double",
  inodes: "double",
  inodesFree: "double",
} as const;

/** The variable `node`. */
export const nodeFields = {
  /**
   * Bytes. `available`: without swapping, as estimated by the kernel. `workingSet`: memory in use without inactive page
   * cache, as the kubelet computes it.
   */
  memory: { total: "double", available: "double", free: "double", workingSet: "double" },
  psi: { memory: pressure, cpu: pressure, io: pressure },
  /** Share of all CPUs in use, 0 to 1, and number of CPUs. */
  cpu: { usage: "double", cores: "double" },
  /** Memory of all pods in bytes. `capacity`: the memory limit of the kubelet's cgroup for all pods. */
  allocatableMemory: { capacity: "double", workingSet: "double" },
  nodefs: filesystem,
  imagefs: filesystem,
  /** The filesystem of writable layers. `isSeparate`: 1 if images are on another filesystem, otherwise 0. */
  containerfs: { ...filesystem, isSeparate: "double" },
  /** Maximum and current number of PIDs. */
  pids: { max: "double", current: "double" },
} as const satisfies FieldTree;

/** The variable `pod`. */
export const podFields = {
  name: "string",
  namespace: "string",
  labels: "map<string, string>",
  annotationKeys: "list<string>",
  qosClass: "string",
  qosLevel: "string",
  priority: "double",
  /** CPUs and bytes. */
  requests: { cpu: "double", memory: "double", ephemeralStorage: "double" },
  usage: {
    /** CPUs. */
    cpu: "double",
    /** As charged by cgroups, in bytes. */
    memory: "double",
    /** `memory` without inactive page cache, in bytes. */
    workingSet: "double",
    /** Anonymous memory in bytes. */
    rss: "double",
    /** Size of the writable layers of its containers in bytes. */
    disk: "double",
    /** Number of inodes in these layers. */
    inodes: "double",
    /** Number of processes and threads. */
    pids: "double",
  },
  /** Seconds. */
  age: "double",
  ownerKind: "string",
} as const satisfies FieldTree;

/** Usage of a pod. */
export type PodUsage = ValuesOf<(typeof podFields)["usage"]>;

/**
 * Maximum number of labels, and of annotation keys, of a pod. A pod that exceeds it is reported as a problem.
 */
export const MOST_ENTRIES = 128;
