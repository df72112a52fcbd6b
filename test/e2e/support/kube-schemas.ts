/** An OpenAPI v3 document of one group version, as kube-apiserver serves it. */
export interface OpenApiDocument {
  components: { schemas: Record<string, Schema> };
}

type Schema = { readonly [field: string]: unknown };

/** What the development API server checks and merges by; everything else is left out. */
const keptFields = [
  "type",
  "format",
  "items",
  "additionalProperties",
  "x-kubernetes-list-type",
  "x-kubernetes-list-map-keys",
  "x-kubernetes-map-type",
  "x-kubernetes-int-or-string",
  "x-kubernetes-preserve-unknown-fields",
];

// Kubernetes' own kinds are checked for these by code, which differs from their schemas.
const customFields = ["required", "enum", "pattern", "minimum", "maximum"];

/**
 * Returns the schemas of kinds and of all types that they refer to, without descriptions, as a JSON object by OpenAPI
 * name with one schema per line.
 * @param kinds names such as "io.k8s.api.core.v1.Pod"
 * @throws if no document has one of the schemas
 */
export function compactSchemas(documents: readonly OpenApiDocument[], kinds: readonly string[]): string {
  const known = Object.assign({}, ...documents.map(({ components }) => components.schemas)) as Record<
    string,
    Schema
  >;
  const found = new Map<string, unknown>();
  const visit = (name: string): void => {
    if (found.has(name)) return;
    const schema = known[name];
    if (!schema) throw new Error(`no schema ${name}`);
    const refs: string[] = [];
    found.set(name, undefined);
    const kept = name.startsWith("io.k8s.") ? keptFields : [...keptFields, ...customFields];
    found.set(name, compact(schema, kept, refs));
    for (const ref of refs) visit(ref);
  };
  for (const kind of kinds) visit(kind);
  const lines = [...found]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map((entry) => entry.map((part) => JSON.stringify(part)).join(":"));
  return `{\n${lines.join(",\n")}\n}\n`;
}

function compact(schema: Schema, fields: readonly string[], refs: string[]): unknown {
  const ref = refIn(schema);
  if (ref !== undefined) {
    refs.push(ref);
    const atomic = schema["x-kubernetes-map-type"];
    return { $ref: ref, ...(atomic ? { "x-kubernetes-map-type": atomic } : {}) };
  }
  // Quantity, IntOrString, and the like.
  if (Array.isArray(schema.oneOf)) return { "x-kubernetes-int-or-string": true };
  const kept: Record<string, unknown> = {};
  for (const field of fields) {
    const value = schema[field];
    if (value === undefined) continue;
    const isSchema = (field === "items" || field === "additionalProperties") && typeof value === "object";
    kept[field] = isSchema ? compact(value as Schema, fields, refs) : value;
  }
  // Items of keyed lists are found by the defaults of key fields that are absent.
  if (typeof schema.default === "string" && schema.default !== "") kept.default = schema.default;
  if (schema.properties) {
    kept.properties = Object.fromEntries(
      Object.entries(schema.properties as Record<string, Schema>).map(([name, each]) => [
        name,
        compact(each, fields, refs),
      ]),
    );
  }
  return kept;
}

function refIn(schema: Schema): string | undefined {
  const all = Array.isArray(schema.allOf) ? (schema.allOf as Schema[]) : [schema];
  const ref = all.length === 1 ? all[0]!.$ref : undefined;
  return typeof ref === "string" ? ref.slice("#/components/schemas/".length) : undefined;
}

/** The kinds that the development API server serves with a schema, by their names in OpenAPI. */
export const servedSchemas: readonly string[] = [
  ...["Namespace", "Node", "Pod", "ConfigMap", "Secret", "Event"].map((kind) => `io.k8s.api.core.v1.${kind}`),
  "io.k8s.api.events.v1.Event",
  "io.k8s.api.coordination.v1.Lease",
  "io.k8s.api.policy.v1.PodDisruptionBudget",
  ...["DeviceClass", "ResourceClaim", "ResourceSlice"].map((kind) => `io.k8s.api.resource.v1.${kind}`),
  "io.k8s.api.resource.v1beta2.ResourceSlice",
  "io.k8s.api.resource.v1beta1.ResourceSlice",
  "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition",
  "io.kubewharf.katalyst.node.v1alpha1.CustomNodeResource",
];
