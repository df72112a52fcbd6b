import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { SourceMap } from "node:module";
import { join } from "node:path";
import { parseAst } from "vitest/node";

interface V8Function {
  ranges: { startOffset: number; endOffset: number; count: number }[];
}

interface V8Coverage {
  result: { url: string; functions: V8Function[] }[];
}

interface Branch {
  /** Offset in the bundle of code that runs only if the branch is taken. */
  readonly at: number;
  /** Directory of packages/agent/src, or a file in it. */
  readonly module: string;
}

const AGENT = /packages\/agent\/src\/([^/]+)/;

/**
 * Which branches of the agent ran, of one bundle and any number of processes. A branch is what runs on a condition: a
 * function, an arm of `if`, `?:` or `switch`, the right side of `&&`, `||` or `??`, a `catch`, the body of a loop. V8
 * counts them; sources are found by the bundle's source map.
 */
export class Coverage {
  readonly #bundle: string;
  readonly #text: string;
  readonly #branches: readonly Branch[];
  readonly #covered = new Set<number>();

  constructor(bundle: string) {
    this.#bundle = bundle;
    this.#text = readFileSync(bundle, "utf8");
    const moduleAt = modulesOf(this.#text, JSON.parse(readFileSync(`${bundle}.map`, "utf8")));
    this.#branches = branchesOf(this.#text).flatMap((at) => {
      const module = moduleAt(at);
      return module === undefined ? [] : [{ at, module }];
    });
  }

  /** Takes what a process has written, after it has ended, and removes it. */
  collect(directory: string): void {
    // A process that crashed has written nothing.
    const names = existsSync(directory) ? readdirSync(directory) : [];
    for (const name of names) {
      const { result } = JSON.parse(readFileSync(join(directory, name), "utf8")) as V8Coverage;
      const script = result.find(({ url }) => url.endsWith(this.#bundle));
      if (!script) continue;
      const hasRun = runOf(script.functions, this.#text.length);
      for (const { at } of this.#branches) if (hasRun[at]) this.#covered.add(at);
    }
    rmSync(directory, { recursive: true, force: true });
  }

  /** One row per module of the agent that is in the bundle. */
  table(): string {
    const modules = [...Map.groupBy(this.#branches, ({ module }) => module)].sort(([a], [b]) =>
      a < b ? -1 : 1,
    );
    const rows = [...modules, ["packages/agent", this.#branches] as const].map(([name, branches]) => {
      const covered = branches.filter(({ at }) => this.#covered.has(at)).length;
      const share = ((covered / branches.length) * 100).toFixed(1);
      return `${name.padEnd(20)} ${`${covered} / ${branches.length}`.padStart(14)} ${share.padStart(6)} %`;
    });
    return [`${"branches of".padEnd(20)} ${"covered / all".padStart(14)}`, ...rows].join("\n");
  }
}

/** Returns for each offset whether its code ran: 1 if it did. */
export function runOf(functions: readonly V8Function[], length: number): Uint8Array {
  const hasRun = new Uint8Array(length);
  // Ranges are nested. The innermost one tells.
  const ranges = functions
    .flatMap((each) => each.ranges)
    .sort((a, b) => a.startOffset - b.startOffset || b.endOffset - a.endOffset);
  for (const { startOffset, endOffset, count } of ranges)
    hasRun.fill(count > 0 ? 1 : 0, startOffset, endOffset);
  return hasRun;
}

function modulesOf(
  text: string,
  map: ConstructorParameters<typeof SourceMap>[0],
): (at: number) => string | undefined {
  const sources = new SourceMap(map);
  // Number of the line and offset of its start, by offset.
  const lines = new Uint32Array(text.length);
  const starts = [0];
  for (let at = 0; at < text.length; at++) {
    lines[at] = starts.length - 1;
    if (text[at] === "\n") starts.push(at + 1);
  }
  return (at) => {
    const line = lines[at]!;
    const entry = sources.findEntry(line, at - starts[line]!);
    return "originalSource" in entry ? AGENT.exec(entry.originalSource)?.[1] : undefined;
  };
}

interface Node {
  type: string;
  start: number;
  [key: string]: unknown;
}

/** Returns the offsets of all branches of a script. */
export function branchesOf(text: string): number[] {
  const found: number[] = [];
  const visit = (value: unknown): void => {
    if (Array.isArray(value)) for (const each of value) visit(each);
    if (!isNode(value)) return;
    for (const part of conditional[value.type]?.(value) ?? []) {
      const at = firstIn(part);
      if (at !== undefined) found.push(at);
    }
    for (const child of Object.values(value)) if (typeof child === "object") visit(child);
  };
  visit(parseAst(text).body);
  return found;
}

/** Parts of a node that run on a condition, by its type. */
const conditional: Readonly<Record<string, (node: Node) => unknown[]>> = {
  IfStatement: ({ consequent, alternate }) => [consequent, alternate],
  ConditionalExpression: ({ consequent, alternate }) => [consequent, alternate],
  LogicalExpression: ({ right }) => [right],
  SwitchCase: ({ consequent }) => [(consequent as unknown[])[0]],
  CatchClause: ({ body }) => [body],
  ForStatement: ({ body }) => [body],
  ForOfStatement: ({ body }) => [body],
  ForInStatement: ({ body }) => [body],
  WhileStatement: ({ body }) => [body],
  FunctionDeclaration: ({ body }) => [body],
  FunctionExpression: ({ body }) => [body],
  ArrowFunctionExpression: ({ body }) => [body],
};

// V8's ranges of blocks begin at, or after, the brace.
function firstIn(part: unknown): number | undefined {
  if (!isNode(part)) return undefined;
  if (part.type !== "BlockStatement") return part.start;
  const [first] = part.body as Node[];
  return first?.start;
}

function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && "type" in value && "start" in value;
}
