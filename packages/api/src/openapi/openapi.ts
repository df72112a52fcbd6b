import { type ErrorCode, errorCodes, NodekeeperError } from "../errors/index.ts";
import { operations, type Parameters, STREAM_PATH, streamParameters, streamSummary } from "../http/index.ts";
import * as s from "../schemas/index.ts";
import { answers, streamEvents } from "./answers.ts";

type Json = Record<string, unknown>;
type Components = Map<string, { source: s.JsonSchema; json: Json }>;

const codes = Object.keys(errorCodes) as ErrorCode[];

/** The response to any failed request. */
const errorSchema = s.named(
  "Error",
  s.object({
    error: s.object({
      code: s.oneOf(codes),
      id: s.optional(s.text("Its id in docs/errors.md: cause and remedy.")),
      message: s.text(),
    }),
  }),
);

/**
 * Returns the API as an OpenAPI 3.1 document, generated from the schemas that also type the handlers. Named schemas
 * become components. Throws `internal` if two schemas have the same name.
 */
export function openApiDocument(version: string): Json {
  const components: Components = new Map();
  const paths: [string, Json][] = Object.entries(operations).map(([path, { summary, parameters }]) => [
    `/api/v1/${path}`,
    {
      get: {
        operationId: operationId(path),
        summary,
        parameters: parametersOf(parameters),
        responses: {
          200: response(
            "The response.",
            "application/json",
            withReferences(answers[path as keyof typeof answers].json, components),
          ),
          default: response("An error.", "application/json", withReferences(errorSchema.json, components)),
        },
      },
    },
  ]);
  paths.push([`/api/v1/${STREAM_PATH}`, streamPath(components)]);
  return {
    openapi: "3.1.1",
    info: {
      title: "Nodekeeper agent",
      version,
      description:
        "State of the node as known to its agent, read-only. Times are milliseconds since the epoch.",
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: "/" }],
    // On loopback no token is required, which the empty requirement expresses.
    security: [{}, { bearer: [] }],
    paths: Object.fromEntries(paths),
    components: {
      schemas: Object.fromEntries([...components].map(([name, { json }]) => [name, json])),
      securitySchemes: {
        bearer: {
          type: "http",
          scheme: "bearer",
          description: "A token of the cluster that may get the nonResourceURL /nodekeeper/api/v1/...",
        },
      },
    },
  };
}

function streamPath(components: Components): Json {
  const data = withReferences(streamEvents.json, components);
  return {
    get: {
      operationId: STREAM_PATH,
      summary: streamSummary,
      parameters: [
        ...parametersOf(streamParameters),
        {
          name: "Last-Event-ID",
          in: "header",
          description: "The `id` of the last message received. A browser sends it when it reconnects.",
          schema: { type: "string" },
        },
      ],
      responses: {
        200: response(
          "Server-sent events: by name of the event, the JSON in its data.",
          "text/event-stream",
          {
            type: "string",
            contentMediaType: "text/event-stream",
            contentSchema: data,
          },
        ),
        default: response("An error.", "application/json", withReferences(errorSchema.json, components)),
      },
    },
  };
}

function parametersOf(parameters: Parameters): Json[] {
  return Object.entries(parameters).map(([name, { about, json, isRequired }]) => ({
    name,
    in: "query",
    description: about,
    required: isRequired,
    schema: json,
  }));
}

function response(description: string, type: string, schema: unknown): Json {
  return { description, content: { [type]: { schema } } };
}

// "eviction/explain" becomes "evictionExplain".
function operationId(path: string): string {
  return path.replace(/\.json$/, "").replace(/[/-](\w)/g, (_, letter: string) => letter.toUpperCase());
}

// Replaces schemas that have a title by references to components.
function withReferences(json: s.JsonSchema, components: Components): unknown {
  const copy = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(copy);
    if (typeof value !== "object" || value === null) return value;
    const { title } = value as s.JsonSchema;
    if (typeof title !== "string") return copyMembers(value);
    const known = components.get(title);
    if (known && known.source !== value)
      throw new NodekeeperError("internal", `two schemas have the name ${title}`);
    if (!known) {
      const component = { source: value as s.JsonSchema, json: {} as Json };
      components.set(title, component);
      component.json = copyMembers(value);
    }
    return { $ref: `#/components/schemas/${title}` };
  };
  const copyMembers = (value: object): Json =>
    Object.fromEntries(Object.entries(value).map(([key, member]) => [key, copy(member)]));
  return copy(json);
}
