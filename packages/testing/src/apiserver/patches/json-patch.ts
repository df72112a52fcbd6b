import { isTree, type MutableTree, own, sameJson, setOwn } from "../json.ts";
import { badRequest, StatusError } from "../status.ts";

interface Operation {
  op: string;
  path: string;
  from?: string;
  value?: unknown;
}

// Limit of the API server.
const MAX_OPERATIONS = 10_000;

/**
 * Applies a JSON patch (RFC 6902). Throws a 400 if the patch is malformed, and a 422 if it does not fit the object or a
 * test fails.
 */
export function jsonPatch(value: unknown, patch: unknown): unknown {
  if (!Array.isArray(patch)) throw badRequest("a JSON patch must be an array of operations");
  if (patch.length > MAX_OPERATIONS) {
    throw new StatusError(
      413,
      "RequestEntityTooLarge",
      `a JSON patch may have at most ${MAX_OPERATIONS} operations`,
    );
  }
  return patch.reduce(
    (document: unknown, operation) => applyOperation(document, readOperation(operation)),
    value,
  );
}

function readOperation(operation: unknown): Operation {
  const readable =
    isTree(operation) &&
    typeof operation.op === "string" &&
    typeof operation.path === "string" &&
    (operation.from === undefined || typeof operation.from === "string");
  if (!readable) throw badRequest(`not an operation of JSON patch: ${JSON.stringify(operation)}`);
  return operation as unknown as Operation;
}

function applyOperation(document: unknown, { op, path, from, value }: Operation): unknown {
  const target = parsePointer(path);
  switch (op) {
    case "add":
      return add(document, target, value);
    case "remove":
      return remove(document, target);
    case "replace":
      read(document, target);
      return target.length === 0 ? value : add(remove(document, target), target, value);
    case "move":
      return add(remove(document, parsePointer(from)), target, read(document, parsePointer(from)));
    case "copy":
      return add(document, target, read(document, parsePointer(from)));
    case "test":
      if (!sameJson(read(document, target), value)) throw misfit(`testing value at ${path} failed`);
      return document;
    default:
      throw badRequest(`unknown operation of JSON patch: ${op}`);
  }
}

function parsePointer(pointer: string | undefined): string[] {
  if (pointer === "") return [];
  if (!pointer?.startsWith("/")) throw badRequest(`not a JSON pointer: ${JSON.stringify(pointer)}`);
  return pointer
    .slice(1)
    .split("/")
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
}

function read(document: unknown, path: string[]): unknown {
  let current = document;
  for (const part of path) {
    const next = Array.isArray(current)
      ? current[indexIn(current, part, current.length - 1)]
      : isTree(current)
        ? own(current, part)
        : undefined;
    if (next === undefined) throw misfit(`no value at ${pointerOf(path)}`);
    current = next;
  }
  return current;
}

function add(document: unknown, path: string[], value: unknown): unknown {
  return change(
    document,
    path,
    path,
    (parent, part) => {
      if (Array.isArray(parent)) {
        const index = part === "-" ? parent.length : indexIn(parent, part, parent.length);
        return parent.toSpliced(index, 0, value);
      }
      const copy: MutableTree = { ...parent };
      setOwn(copy, part, value);
      return copy;
    },
    value,
  );
}

function remove(document: unknown, path: string[]): unknown {
  read(document, path);
  return change(
    document,
    path,
    path,
    (parent, part) => {
      if (Array.isArray(parent)) return parent.toSpliced(indexIn(parent, part, parent.length - 1), 1);
      const copy: MutableTree = { ...parent };
      delete copy[part];
      return copy;
    },
    null,
  );
}

// Copies the containers along the path. `edit` creates the new last container.
function change(
  document: unknown,
  path: string[],
  whole: string[],
  edit: (parent: unknown[] | MutableTree, part: string) => unknown,
  rootValue: unknown,
): unknown {
  const [part, ...rest] = path;
  if (part === undefined) return rootValue;
  if (!Array.isArray(document) && !isTree(document)) throw misfit(`no container at ${pointerOf(whole)}`);
  if (rest.length === 0) return edit(document as unknown[] | MutableTree, part);
  const below = Array.isArray(document)
    ? document[indexIn(document, part, document.length - 1)]
    : own(document, part);
  if (below === undefined) throw misfit(`no value on the way to ${pointerOf(whole)}`);
  const changed = change(below, rest, whole, edit, rootValue);
  if (Array.isArray(document)) return document.with(indexIn(document, part, document.length - 1), changed);
  const copy: MutableTree = { ...document };
  setOwn(copy, part, changed);
  return copy;
}

function indexIn(list: unknown[], part: string, max: number): number {
  const index = /^(0|[1-9]\d*)$/.test(part) ? Number(part) : -1;
  if (index < 0 || index > max) throw misfit(`no index ${part} in a list of ${list.length}`);
  return index;
}

const pointerOf = (path: string[]) => `/${path.join("/")}`;

function misfit(why: string): StatusError {
  return new StatusError(
    422,
    "Invalid",
    `the server rejected our request due to an error in our request: ${why}`,
  );
}
