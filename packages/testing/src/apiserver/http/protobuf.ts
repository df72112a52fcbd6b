import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { type MutableTree, setOwn } from "../json.ts";
import { unsupportedMediaType } from "../status.ts";

/** Decoding of a field. `intOrString` is the API's union type. Bytes become base64, as in JSON. */
type FieldType = "string" | "bytes" | "integer" | "boolean" | "intOrString" | { message: Message };
interface Field {
  name: string;
  type: FieldType;
  many?: "list" | "map";
}
type Message = Readonly<Record<number, Field>>;

const one = (name: string, type: FieldType = "string"): Field => ({ name, type });
const list = (name: string, type: FieldType = "string"): Field => ({ name, type, many: "list" });
const mapOf = (name: string, type: FieldType = "string"): Field => ({ name, type, many: "map" });

// Field numbers from the API's generated.proto files. Only fields that clients write.
const ownerReference: Message = {
  1: one("kind"),
  3: one("name"),
  4: one("uid"),
  5: one("apiVersion"),
  6: one("controller", "boolean"),
  7: one("blockOwnerDeletion", "boolean"),
};

const objectMeta: Message = {
  1: one("name"),
  2: one("generateName"),
  3: one("namespace"),
  5: one("uid"),
  6: one("resourceVersion"),
  11: mapOf("labels"),
  12: mapOf("annotations"),
  13: list("ownerReferences", { message: ownerReference }),
  14: list("finalizers"),
};

const metadata = one("metadata", { message: objectMeta });

const labelSelector: Message = {
  1: mapOf("matchLabels"),
  2: list("matchExpressions", { message: { 1: one("key"), 2: one("operator"), 3: list("values") } }),
};

const budgetSpec: Message = {
  1: one("minAvailable", "intOrString"),
  2: one("selector", { message: labelSelector }),
  3: one("maxUnavailable", "intOrString"),
  4: one("unhealthyPodEvictionPolicy"),
};

const deleteOptions: Message = {
  1: one("gracePeriodSeconds", "integer"),
  2: one("preconditions", { message: { 1: one("uid"), 2: one("resourceVersion") } }),
  4: one("propagationPolicy"),
  5: list("dryRun"),
};

const resourceAttributes: Message = {
  1: one("namespace"),
  2: one("verb"),
  3: one("group"),
  4: one("version"),
  5: one("resource"),
  6: one("subresource"),
  7: one("name"),
};

const accessSpec: Message = {
  1: one("resourceAttributes", { message: resourceAttributes }),
  2: one("nonResourceAttributes", { message: { 1: one("path"), 2: one("verb") } }),
};

const kinds: Readonly<Record<string, Message>> = {
  Namespace: { 1: metadata },
  ConfigMap: {
    1: metadata,
    2: mapOf("data"),
    3: mapOf("binaryData", "bytes"),
    4: one("immutable", "boolean"),
  },
  Secret: { 1: metadata, 2: mapOf("data", "bytes"), 3: one("type"), 4: mapOf("stringData") },
  PodDisruptionBudget: { 1: metadata, 2: one("spec", { message: budgetSpec }) },
  Eviction: { 1: metadata, 2: one("deleteOptions", { message: deleteOptions }) },
  SelfSubjectAccessReview: { 1: metadata, 2: one("spec", { message: accessSpec }) },
  DeleteOptions: deleteOptions,
};

const envelope: Message = {
  1: one("type", { message: { 1: one("apiVersion"), 2: one("kind") } }),
};
const RAW = 2;
const MAGIC = "k8s\0";

/**
 * Decodes a body in the API's protobuf encoding, which clients such as `kubectl create namespace` send. Supports only
 * the kinds above. Throws a 415 for others, for which clients can be configured to use JSON. Throws if the bytes are
 * malformed.
 */
export function readProtobuf(body: Buffer): unknown {
  if (body.subarray(0, MAGIC.length).toString("latin1") !== MAGIC)
    throw new Error("not the protobuf encoding of the API");
  const bytes = body.subarray(MAGIC.length);
  const { type } = readMessage(bytes, envelope) as { type?: { apiVersion?: string; kind?: string } };
  const kind = type?.kind ?? "";
  const message = Object.hasOwn(kinds, kind) ? kinds[kind] : undefined;
  if (!message) throw unsupportedMediaType(["application/json", "application/yaml"]);
  return { ...type, ...readMessage(rawOf(bytes), message) };
}

function rawOf(bytes: Uint8Array): Uint8Array {
  const reader = new BinaryReader(bytes);
  while (reader.pos < reader.len) {
    const [number, wire] = reader.tag();
    if (number === RAW && wire === WireType.LengthDelimited) return reader.bytes();
    reader.skip(wire, number);
  }
  return new Uint8Array();
}

function readMessage(bytes: Uint8Array, message: Message): MutableTree {
  const reader = new BinaryReader(bytes);
  const result: MutableTree = {};
  while (reader.pos < reader.len) {
    const [number, wire] = reader.tag();
    const field = message[number];
    if (!field) reader.skip(wire, number);
    else addField(result, field, reader);
  }
  return result;
}

// Omits empty strings: protobuf encodes them where JSON omits the field.
function addField(result: MutableTree, field: Field, reader: BinaryReader): void {
  const { name, type, many } = field;
  if (many === "list") {
    result[name] = [...((result[name] as unknown[] | undefined) ?? []), readValue(type, reader)];
  } else if (many === "map") {
    const entry = readMessage(reader.bytes(), { 1: one("key"), 2: one("value", type) });
    const map = (result[name] as MutableTree | undefined) ?? {};
    setOwn(map, String(entry.key ?? ""), entry.value ?? "");
    result[name] = map;
  } else {
    const value = readValue(type, reader);
    if (value !== "") result[name] = value;
  }
}

function readValue(type: FieldType, reader: BinaryReader): unknown {
  if (type === "string") return reader.string();
  if (type === "boolean") return reader.bool();
  if (type === "integer") return Number(reader.int64());
  if (type === "bytes") return Buffer.from(reader.bytes()).toString("base64");
  if (type !== "intOrString") return readMessage(reader.bytes(), type.message);
  const union = readMessage(reader.bytes(), {
    1: one("type", "integer"),
    2: one("number", "integer"),
    3: one("text"),
  });
  return union.type === 1 ? (union.text ?? "") : (union.number ?? 0);
}
