import { apiVersionOf, type ResourceDefinition, type ServedVersion } from "./definition.ts";

/** The currently served kinds. CustomResourceDefinitions add and remove kinds. */
export class Catalogue {
  readonly #definitions = new Map<string, ResourceDefinition>();
  readonly #checksFields: boolean;
  #generation = 0;

  /** @param checksFields whether objects are validated against the schemas of their kinds */
  constructor(definitions: ResourceDefinition[], checksFields: boolean) {
    this.#checksFields = checksFields;
    for (const definition of definitions) this.#definitions.set(nameOf(definition), definition);
  }

  /** Changes whenever a kind is added, changed or removed. */
  get generation(): number {
    return this.#generation;
  }

  all(): ResourceDefinition[] {
    return [...this.#definitions.values()];
  }

  /** Returns the kind served at a path. Undefined if there is none. */
  find(
    group: string,
    version: string,
    plural: string,
  ): { definition: ResourceDefinition; version: ServedVersion } | undefined {
    const definition = this.#definitions.get(`${plural}.${group}`);
    const served = definition?.versions.find(({ name }) => name === version);
    if (!definition || !served) return undefined;
    return { definition, version: this.#checksFields ? served : { ...served, openapi: undefined } };
  }

  /** Finds a kind by "plural.group". For the core group: "plural." or "plural". */
  byName(name: string): ResourceDefinition | undefined {
    return this.#definitions.get(name.includes(".") ? name : `${name}.`);
  }

  byKind(
    apiVersion: string,
    kind: string,
  ): { definition: ResourceDefinition; version: ServedVersion } | undefined {
    for (const definition of this.#definitions.values()) {
      if (definition.kind !== kind) continue;
      const version = definition.versions.find(
        (candidate) => apiVersionOf(definition, candidate) === apiVersion,
      );
      if (version) return { definition, version };
    }
    return undefined;
  }

  /** Returns the kind whose objects are in a storage. The first one if several kinds share it. */
  byStorage(storage: string): ResourceDefinition | undefined {
    return this.all().find((definition) => definition.storage === storage);
  }

  set(definition: ResourceDefinition): void {
    this.#definitions.set(nameOf(definition), definition);
    this.#generation++;
  }

  delete(definition: ResourceDefinition): void {
    if (this.#definitions.delete(nameOf(definition))) this.#generation++;
  }
}

function nameOf({ plural, group }: ResourceDefinition): string {
  return `${plural}.${group}`;
}
