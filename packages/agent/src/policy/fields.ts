/** What an expression can read: a number (of bytes, seconds, CPUs), a text, texts, or texts by name. */
export type FieldType = "double" | "string" | "list<string>" | "map<string, string>";

/** Fields of a variable by name; some are groups of others. */
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

/** Labels and annotation keys of a pod that are looked at; a pod that has more of them is reported as a problem. */
export const MOST_ENTRIES = 128;
