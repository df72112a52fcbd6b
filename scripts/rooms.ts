import { glob, readFile } from "node:fs/promises";
import { dirname, join, posix } from "node:path";

/** From top to bottom: a room imports only from those after it. `main.ts` and `agent.ts` are rooms of one file. */
export const rooms = [
  "main.ts",
  "cli",
  "agent.ts",
  "assembly",
  "devcluster",
  "server",
  "intree",
  "eviction",
  "devices",
  "reporting",
  "plugins",
  "lifecycle",
  "runtime",
  "host",
  "kube",
  "state",
  "config",
  "grpc",
  "lib",
  "gen",
] as const;

// The SDK is its own package entry: it may use what carries no knowledge of the agent.
const sdkMayImport = ["grpc", "lib", "gen"];

interface Import {
  from: string;
  to: string;
  line: number;
}

/** What breaks the rules of rooms in the repository at `root`, one line each. Paths are relative to it. */
export async function findRoomProblems(root: string): Promise<string[]> {
  const files: string[] = [];
  for await (const file of glob("{src,sdk}/**/*.ts", { cwd: root })) files.push(file);
  const product = files
    .map((file) => file.replaceAll("\\", "/"))
    .filter((file) => !isTest(file))
    .sort();
  const imports: Import[] = [];
  for (const file of product) {
    if (!file.startsWith("src/gen/"))
      imports.push(...readImports(file, await readFile(join(root, file), "utf8")));
  }
  const unknown = new Set(product.filter((file) => file.startsWith("src/") && rank(file) < 0).map(roomOf));
  return [
    ...[...unknown].map((room) => `src/${room}: not a room; the list is in scripts/rooms.ts`),
    ...imports.flatMap(problemOf),
    ...findCycles(product, imports),
  ];
}

/** The relative imports of a file; `to` is a path from the root. Other imports are packages and free. */
export function readImports(file: string, source: string): Import[] {
  // At the beginning of a line, where the formatter puts statements and comments and texts have none.
  const pattern =
    /^\s*(?:import|export)\b[^"'`;]*?["'](\.{1,2}\/[^"']+)["']|\bimport\(\s*["'](\.{1,2}\/[^"']+)["']/gm;
  return [...source.matchAll(pattern)].map((match) => ({
    from: file,
    to: posix.normalize(posix.join(dirname(file), match[1] ?? match[2]!)),
    line:
      source.slice(0, match.index).split("\n").length + (/^\s*/.exec(match[0])![0].split("\n").length - 1),
  }));
}

function problemOf({ from, to, line }: Import): string[] {
  const refuse = (why: string) => [`${from}:${line}: imports ${to}: ${why}`];
  if (isTest(to)) return refuse("only tests may import from tests");
  if (from.startsWith("sdk/")) {
    if (to.startsWith("sdk/")) return [];
    if (!sdkMayImport.includes(roomOf(to)))
      return refuse(`the SDK may only import src/{${sdkMayImport.join(",")}}`);
    return isDoor(to) ? [] : refuse("other rooms are imported by their index.ts");
  }
  if (to === "package.json") return [];
  // Commands ask the agent as any other program does.
  if (to === "sdk/index.ts" && roomOf(from) === "cli") return [];
  if (!to.startsWith("src/")) return refuse("src may not import what is outside");
  if (roomOf(from) === roomOf(to)) return [];
  if (rank(to) < rank(from)) return refuse(`room ${roomOf(from)} is below ${roomOf(to)}`);
  return isDoor(to) ? [] : refuse("other rooms are imported by their index.ts");
}

function isTest(file: string): boolean {
  return file.endsWith(".test.ts") || file.includes("/testing/") || file.includes("/fixtures/");
}

// "src/lib/clock.ts" is of room "lib", "src/agent.ts" of room "agent.ts".
function roomOf(file: string): string {
  return file.split("/")[1] ?? "";
}

function rank(file: string): number {
  return rooms.indexOf(roomOf(file) as (typeof rooms)[number]);
}

// Generated code has no index; a room of one file is its own door.
function isDoor(file: string): boolean {
  const parts = file.split("/");
  return parts.length === 2 || parts[1] === "gen" || (parts.length === 3 && parts[2] === "index.ts");
}

// Depth first; each cycle is told once, from where it was entered. Type imports count: they tie files as well.
function findCycles(files: readonly string[], imports: readonly Import[]): string[] {
  const targets = Map.groupBy(imports, ({ from }) => from);
  const finished = new Set<string>();
  const trail: string[] = [];
  const problems: string[] = [];
  const visit = (file: string) => {
    if (trail.includes(file)) {
      problems.push(`import cycle: ${[...trail.slice(trail.indexOf(file)), file].join(" > ")}`);
      return;
    }
    if (finished.has(file)) return;
    trail.push(file);
    for (const { to } of targets.get(file) ?? []) visit(to);
    trail.pop();
    finished.add(file);
  };
  for (const file of files) visit(file);
  return problems;
}
