import { AnswerNotOfKubernetes } from "@nodekeeper/api/errors";
import { codeOf, NodekeeperError } from "../lib/index.ts";
import { type ApiRequest, type Connection, nameOf } from "./connection.ts";
import { asObject, isRecord, typed } from "./objects.ts";
import { collectionPath } from "./paths.ts";
import type { ApiResource, KubeObject, ListOptions } from "./types.ts";

const PAGE_SIZE = 500;
/** Maximum total size of a list's pages, in bytes. */
const LONGEST_LIST = 64 * 1024 * 1024;
const MOST_RESTARTS = 3;
/** With pages of 500 objects, more objects than a cluster has of a kind. */
const MOST_PAGES = 1_000;

interface Page {
  items: KubeObject[];
  resourceVersion: string;
  next: string | undefined;
  bytes: number;
}

/** Lists all pages. The deadline applies to each page. If the continue token expires, the list is restarted. */
export async function listWhole(connection: Connection, resource: ApiResource, options: ListOptions = {}) {
  return await withRestarts(async () => {
    const pages: KubeObject[][] = [];
    let resourceVersion = "";
    for await (const page of pagesOf(connection, resource, options, LONGEST_LIST)) {
      pages.push(page.items);
      ({ resourceVersion } = page);
    }
    return { items: pages.flat(), resourceVersion };
  });
}

/** Calls `visit` with each object of the list, of which only one page is kept in memory: `KubeApiClient.visit`. */
export async function visitList(
  connection: Connection,
  resource: ApiResource,
  visit: (object: KubeObject) => void,
  options: ListOptions = {},
): Promise<void> {
  await withRestarts(async () => {
    for await (const { items } of pagesOf(connection, resource, options))
      for (const item of items) visit(item);
  });
}

async function withRestarts<T>(list: () => Promise<T>): Promise<T> {
  for (let restarts = 0; ; restarts++) {
    try {
      return await list();
    } catch (error) {
      if (codeOf(error) !== "expired" || restarts >= MOST_RESTARTS) throw error;
    }
  }
}

/** @param longest maximum total size of the pages, in bytes */
async function* pagesOf(
  connection: Connection,
  resource: ApiResource,
  options: ListOptions,
  longest = Number.POSITIVE_INFINITY,
): AsyncGenerator<Page, void> {
  let bytes = 0;
  let next: string | undefined;
  for (let pages = 0; pages < MOST_PAGES; pages++) {
    const page = await listPage(connection, resource, options, { next, longest: longest - bytes });
    if (page.next !== undefined && page.next === next) {
      throw new NodekeeperError(
        "unavailable",
        `list of ${resource.plural}: the server returned the same page repeatedly`,
      );
    }
    yield page;
    bytes += page.bytes;
    ({ next } = page);
    if (next === undefined) return;
  }
  throw new NodekeeperError("exhausted", `list of ${resource.plural}: more than ${MOST_PAGES} pages`);
}

async function listPage(
  connection: Connection,
  resource: ApiResource,
  options: ListOptions,
  { next, longest }: { next: string | undefined; longest: number },
): Promise<Page> {
  const { namespace, fieldSelector, labelSelector, resourceVersion, pageSize = PAGE_SIZE } = options;
  const isFromCache = resourceVersion !== undefined && resourceVersion !== "0";
  const request: ApiRequest = {
    method: "GET",
    path: collectionPath(resource, namespace),
    query: {
      fieldSelector,
      labelSelector,
      // With a limit, servers before 1.33 would serve the list from etcd.
      limit: isFromCache && !next ? undefined : pageSize,
      continue: next,
      // The continue token contains the resource version. The server rejects requests that specify both.
      resourceVersion: next ? undefined : resourceVersion,
      resourceVersionMatch: isFromCache && !next ? "NotOlderThan" : undefined,
    },
    verb: "list",
    resource: resource.plural,
    longest,
  };
  const { value, bytes } = await connection.call(request, options);
  return { ...readPage(nameOf(request), resource, value), bytes };
}

function readPage(what: string, resource: ApiResource, value: unknown): Omit<Page, "bytes"> {
  const list = asObject(what, value);
  // Go serializes a nil slice as null.
  const items = list.items ?? [];
  if (!Array.isArray(items))
    throw new AnswerNotOfKubernetes({ request: what, problem: "the response is not a list" });
  const { resourceVersion, continue: next } = list.metadata as {
    resourceVersion?: unknown;
    continue?: unknown;
  };
  return {
    items: items.map((item, index) => {
      if (!isRecord(item))
        throw new NodekeeperError("unavailable", `${what}: item ${index} is not an object`);
      return typed(resource, asObject(what, item));
    }),
    resourceVersion: typeof resourceVersion === "string" ? resourceVersion : "",
    next: typeof next === "string" && next !== "" ? next : undefined,
  };
}
