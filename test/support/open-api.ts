import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import { expect } from "vitest";

/** An OpenAPI document, as far as tests look at it. */
interface OpenApi {
  paths: Record<string, { get: { responses: Record<string, { content: Record<string, MediaType> }> } }>;
  components: { schemas: Record<string, unknown> };
}

interface MediaType {
  schema: { contentSchema?: object };
}

/** Checks answers against an OpenAPI document. Members that the document does not have are errors here. */
export class ApiContract {
  readonly document: OpenApi;
  readonly #ajv: Ajv2020;
  readonly #validators = new Map<string, ValidateFunction>();

  constructor(document: unknown) {
    this.document = document as OpenApi;
    this.#ajv = new Ajv2020({ strict: true, strictTypes: false, allowUnionTypes: true, allErrors: true });
    this.#ajv.addSchema(closed({ $id: "api", $defs: this.document.components.schemas }) as object);
  }

  /** The paths with a JSON answer, without /api/v1/. */
  get paths(): string[] {
    const json = Object.entries(this.document.paths).filter(
      ([, { get }]) => "application/json" in get.responses["200"]!.content,
    );
    return json.map(([path]) => path.slice("/api/v1/".length));
  }

  /** Expects the answer of a path to be as the document has it. */
  check(path: string, answer: unknown, status: "200" | "default" = "200"): void {
    const { responses } = this.document.paths[`/api/v1/${path.split("?")[0]}`]!.get;
    this.#check(`${path} ${status}`, responses[status]!.content["application/json"]!.schema, answer);
  }

  /** Expects the data of a streamed event to be as the document has it. */
  checkEvent(name: string, data: unknown): void {
    const { schema } =
      this.document.paths["/api/v1/stream"]!.get.responses["200"]!.content["text/event-stream"]!;
    this.#check("stream", schema.contentSchema!, { [name]: data });
  }

  #check(key: string, schema: object, value: unknown): void {
    const validate = this.#validators.get(key) ?? this.#ajv.compile(closed(schema) as object);
    this.#validators.set(key, validate);
    const errors = validate(value) ? [] : validate.errors!.slice(0, 5);
    expect(errors, `${key}: ${JSON.stringify(value)?.slice(0, 2_000)}`).toEqual([]);
  }
}

// References to components, which are one schema here, and no further members of objects.
function closed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(closed);
  if (typeof value !== "object" || value === null) return value;
  const copy = Object.fromEntries(Object.entries(value).map(([key, member]) => [key, closed(member)]));
  if (typeof copy.$ref === "string")
    return { $ref: copy.$ref.replace("#/components/schemas/", "api#/$defs/") };
  const isObjectSchema = copy.type === "object" && typeof copy.properties === "object";
  return isObjectSchema && !("additionalProperties" in copy)
    ? { ...copy, additionalProperties: false }
    : copy;
}
