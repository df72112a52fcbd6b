import { glob, readFile } from "node:fs/promises";
import { dirname, join, posix } from "node:path";

/** What each package may import, as `@nodekeeper/<name>`. */
const packages: Readonly<Record<string, readonly string[]>> = {
  agent: ["testing", "sdk", "core", "api"],
  testing: ["core", "api"],
  sdk: ["core", "api"],
  core: ["api"],
  api: [],
  "create-plugin": [],
  page: ["api"],
};

/**
 * The modules of packages that have them, from top to bottom: a module imports only from those after it. `main.ts` and
 * `agent.ts` are modules of one file.
 */
const modules: Readonly<Record<string, readonly string[]>> = {
  agent: [
    "main.ts",
    "launch.ts",
    "cli",
    "conformance",
    "agent.ts",
    "assembly",
    "server",
    "intree",
    "policy",
    "pod-usage",
    "archive",
    "eviction",
    "claims",
    "devices",
    "reporting",
    "plugins",
    "lifecycle",
    "runtime",
    "host",
    "state",
    "config",
  ],
  api: [
    "error-catalogue",
    "wording",
    "archive",
    "replay",
    "records",
    "fleet",
    "decide",
    "openapi",
    "schemas",
    "http",
    "reasons",
    "lifecycle",
    "settings",
    "text",
    "errors",
  ],
  core: ["kube", "grpc", "yaml", "lib", "gen"],
};

/** Directories inside of a module, from top to bottom: one imports only from those after it. */
const layers: Readonly<Record<string, readonly string[]>> = {
  "packages/agent/src/devices": ["sync", "plan", "model"],
};

/** Directories of pure functions: besides their own files they import only these files and directories. */
const pureDirectories: Readonly<Record<string, readonly string[]>> = {
  "packages/agent/src/devices/plan": ["packages/core/src/lib/index.ts", "packages/agent/src/devices/model/"],
};

interface Import {
  from: string;
  to: string;
  line: number;
  /** Whether it is imported by the name of its package. */
  isNamed: boolean;
}

/** What breaks the rules of packages and modules in the repository at `root`, one line each. Paths are relative to it. */
export async function findRoomProblems(root: string): Promise<string[]> {
  const files: string[] = [];
  for await (const file of glob("packages/*/src/**/*.{ts,tsx}", { cwd: root })) files.push(file);
  const product = files
    .map((file) => file.replaceAll("\\", "/"))
    .filter((file) => !isTest(file))
    .sort();
  const imports: Import[] = [];
  for (const file of product) {
    if (!file.startsWith("packages/core/src/gen/"))
      imports.push(...readImports(file, await readFile(join(root, file), "utf8")));
  }
  const places = new Map(product.map((file) => [placeOf(file).path, placeOf(file)]));
  return [
    ...[...places.values()]
      .filter(isUnknown)
      .map(({ path }) => `${path}: not in the lists of scripts/rooms.ts`),
    ...imports.flatMap(problemOf),
  ];
}

/** The imports of a file from this repository; `to` is a path from the root. Those of other packages are free. */
export function readImports(file: string, source: string): Import[] {
  // At the beginning of a line, where the formatter puts statements and comments and texts have none.
  const pattern =
    /^\s*(?:import|export)\b[^"'`;]*?["']((?:\.{1,2}|@nodekeeper)\/[^"']+)["']|\bimport\(\s*["']((?:\.{1,2}|@nodekeeper)\/[^"']+)["']/gm;
  return [...source.matchAll(pattern)].map((match) => {
    const specifier = match[1] ?? match[2]!;
    const linesBefore = source.slice(0, match.index).split("\n").length;
    const line = linesBefore + /^\s*/.exec(match[0])![0].split("\n").length - 1;
    return { from: file, to: pathOf(file, specifier), line, isNamed: specifier.startsWith("@") };
  });
}

// "@nodekeeper/core/lib" is packages/core/src/lib/index.ts. Whether a package offers a path is in its `exports`.
function pathOf(file: string, specifier: string): string {
  const [, name, inner] = /^@nodekeeper\/([^/]+)(?:\/(.+))?$/.exec(specifier) ?? [];
  if (!name) return posix.normalize(posix.join(dirname(file), specifier));
  const path = `packages/${name}/src`;
  if (!inner) return `${path}/index.ts`;
  return inner.endsWith(".ts") ? `${path}/${inner}` : `${path}/${inner}/index.ts`;
}

function problemOf({ from, to, line, isNamed }: Import): string[] {
  const refuse = (why: string) => [`${from}:${line}: imports ${to}: ${why}`];
  if (isTest(to)) return refuse("only tests may import from tests");
  const importer = placeOf(from);
  const imported = placeOf(to);
  const pure = Object.entries(pureDirectories).find(([directory]) => from.startsWith(`${directory}/`));
  const isAllowed = (path: string) => (path.endsWith("/") ? to.startsWith(path) : to === path);
  if (pure && !to.startsWith(`${pure[0]}/`) && !pure[1].some(isAllowed))
    return refuse(`${pure[0]} is pure: it may import only ${pure[1].join(", ")}`);
  if (to === `packages/${importer.package}/package.json`) return [];
  if (!imported.package) return refuse("packages may not import what is outside of packages");
  if (importer.package !== imported.package) {
    if (!packages[importer.package]?.includes(imported.package))
      return refuse(`package ${importer.package} may not import package ${imported.package}`);
    if (!isNamed)
      return refuse(`other packages are imported by their names, @nodekeeper/${imported.package}`);
    return isDoor(to) ? [] : refuse("other modules are imported by their index.ts");
  }
  if (importer.room === imported.room || !modules[importer.package]) {
    const above = layerAbove(from, to);
    return above ? refuse(above) : [];
  }
  if (rankOf(imported) < rankOf(importer)) return refuse(`room ${importer.room} is below ${imported.room}`);
  return isDoor(to) ? [] : refuse("other modules are imported by their index.ts");
}

// Below src/: there is a package named testing.
function isTest(file: string): boolean {
  return /\.test\.tsx?$/.test(file) || /\/src\/(?:.*\/)?(?:testing|fixtures)\//.test(file);
}

interface Place {
  /** Empty outside of packages. */
  package: string;
  /** The first directory below src/, or the file there. */
  room: string;
  path: string;
}

function placeOf(file: string): Place {
  const [, name = "", room = ""] = /^packages\/([^/]+)\/src\/([^/]+)/.exec(file) ?? [];
  return { package: name, room, path: modules[name] ? `packages/${name}/src/${room}` : `packages/${name}` };
}

function isUnknown({ package: name, room }: Place): boolean {
  return !packages[name] || (modules[name] !== undefined && !modules[name].includes(room));
}

function rankOf({ package: name, room }: Place): number {
  return modules[name]!.indexOf(room);
}

// Returns why a file may not import another file of its module. Undefined if it may, or if the module has no layers.
// Files outside of the layers are above all of them.
function layerAbove(from: string, to: string): string | undefined {
  const room = Object.keys(layers).find((path) => from.startsWith(`${path}/`) && to.startsWith(`${path}/`));
  if (room === undefined) return undefined;
  const [importer, imported] = [from, to].map((file) => file.slice(room.length + 1).split("/")[0]!);
  const rank = (layer: string) => layers[room]!.indexOf(layer);
  if (rank(importer!) <= rank(imported!)) return undefined;
  return `layer ${importer} is below ${rank(imported!) < 0 ? room : imported}`;
}

// Generated code has no index; a module of one file is its own door, as is a file of a package without modules.
function isDoor(file: string): boolean {
  const [, room = "", ...inner] = file.slice("packages/".length).split("/src/").join("/").split("/");
  return room === "gen" || inner.length === 0 || (inner.length === 1 && inner[0] === "index.ts");
}
