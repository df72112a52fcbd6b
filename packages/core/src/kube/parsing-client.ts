import type { KubeClient } from "./types.ts";

/**
 * Returns the client with a different default of `CallOptions.parse` for calls that return objects. For modules that
 * forward or compare the objects they read.
 */
export function parsingWith<Client extends KubeClient>(
  client: Client,
  parse: (text: string) => unknown,
): Client {
  return {
    ...client,
    get: (resource, name, options) => client.get(resource, name, { parse, ...options }),
    list: (resource, options) => client.list(resource, { parse, ...options }),
    create: (resource, object, options) => client.create(resource, object, { parse, ...options }),
    update: (resource, object, options) => client.update(resource, object, { parse, ...options }),
    apply: (resource, object, options) => client.apply(resource, object, { parse, ...options }),
  };
}
