/**
 * Types of fields: a number (bytes, seconds, CPUs), a string, a list of strings, or a map from strings to
 * strings.
 */
export type FieldType = "double" | "string" | "list<string>" | "map<string, string>";

/** Fields of a variable by name. A nested tree is a group of fields. */
export interface FieldTree {
  readonly [name: string]: FieldType | FieldTree;
}

const stall: FieldTree = { avg10: "double", avg60: "double", avg300: "double" };
const pressure: FieldTree = { some: stall, full: stall };
const filesystem: FieldTree = {
  capacity: "double",
  available: "double",
  inodes: "double",
  inodesFree: "double",
};

/** The variable `node`. */
export const nodeFields: FieldTree = {
  memory: { total: "double", available: "double", free: "double", workingSet: "double" },
  psi: { memory: pressure, cpu: pressure, io: pressure },
  cpu: { usage: "double", cores: "double" },
  allocatableMemory: { capacity: "double", workingSet: "double" },
  nodefs: filesystem,
  imagefs: filesystem,
  containerfs: { ...filesystem, isSeparate: "double" },
  pids: { max: "double", current: "double" },
};

/** The variable `pod`. */
export const podFields: FieldTree = {
  name: "string",
  namespace: "string",
  labels: "map<string, string>",
  annotationKeys: "list<string>",
  qosClass: "string",
  qosLevel: "string",
  priority: "double",
  requests: { cpu: "double", memory: "double", ephemeralStorage: "double" },
  usage: {
    cpu: "double",
    memory: "double",
    workingSet: "double",
    rss: "double",
    disk: "double",
    inodes: "double",
    pids: "double",
  },
  age: "double",
  ownerKind: "string",
};

/**
 * Maximum number of labels, and of annotation keys, of a pod. A pod that exceeds it is reported as a problem.
 */
export const MOST_ENTRIES = 128;
