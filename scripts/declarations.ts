import { glob, mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join, posix } from "node:path";
import { root, runTool, withTemporaryDirectory } from "./programs.ts";

/** A statement that takes names from another file. */
interface Import {
  statement: string;
  /** Undefined: all. */
  names: readonly string[] | undefined;
  isExport: boolean;
  specifier: string;
}

/**
 * Writes the types of `entries` (paths from the root, below packages/) into `directory`, laid out as the packages are. Of
 * what they import from this repository, only the files that declare them are written, so that types of
 * packages that the entries have nothing to do with are not asked for.
 */
export async function writeDeclarations(entries: readonly string[], directory: string): Promise<void> {
  await withTemporaryDirectory(async (scratch) => {
    const all = await declarationsOf(entries, scratch);
    for (const [path, text] of neededOf(entries.map(declarationPath), all)) {
      const target = join(directory, path);
      await mkdir(dirname(target), { recursive: true });
      await writeFile(target, text);
    }
  });
}

// "packages/sdk/src/index.ts" is "sdk/src/index.d.ts".
function declarationPath(entry: string): string {
  return entry.replace(/^packages\//, "").replace(/\.ts$/, ".d.ts");
}

async function declarationsOf(entries: readonly string[], directory: string): Promise<Map<string, string>> {
  // A configuration of its own: tsc takes no file names beside -p, and the project's own has tests in it.
  const project = join(directory, "tsconfig.json");
  await writeFile(
    project,
    JSON.stringify({
      extends: join(root, "tsconfig.json"),
      compilerOptions: {
        noEmit: false,
        declaration: true,
        emitDeclarationOnly: true,
        stripInternal: true,
        rootDir: join(root, "packages"),
        outDir: directory,
        typeRoots: [join(root, "node_modules/@types")],
        // By their paths: of what is found in node_modules, no types are written.
        paths: {
          "@nodekeeper/api/*": [join(root, "packages/api/src/*/index.ts")],
          "@nodekeeper/core/gen/*": [join(root, "packages/core/src/gen/*")],
          "@nodekeeper/core/*": [join(root, "packages/core/src/*/index.ts")],
        },
      },
      include: [],
      files: entries.map((entry) => join(root, entry)),
    }),
  );
  await runTool("tsc", ["-p", project]);
  const files = new Map<string, string>();
  for await (const file of glob("**/*.d.ts", { cwd: directory })) {
    files.set(file.replaceAll("\\", "/"), await readFile(join(directory, file), "utf8"));
  }
  return files;
}

/** The files of `all` that the entries need, with paths that a consumer's compiler finds. */
function neededOf(entries: readonly string[], all: ReadonlyMap<string, string>): Map<string, string> {
  // By file, the names that are asked of it; undefined: all of them.
  const wanted = new Map<string, Set<string> | undefined>();
  const want = (file: string, names: readonly string[] | undefined): void => {
    const text = all.get(file);
    if (text === undefined) throw new Error(`no types of ${file}`);
    const before = wanted.get(file);
    if (wanted.has(file) && (before === undefined || names?.every((name) => before.has(name)))) return;
    wanted.set(file, names && new Set([...(before ?? []), ...names]));
    for (const { specifier, names: taken } of keptImports(text, wanted.get(file))) {
      const target = targetOf(file, specifier);
      if (target) want(target, taken);
    }
  };
  for (const entry of entries) want(entry, undefined);
  return new Map([...wanted].map(([file, names]) => [file, written(file, all.get(file)!, names)]));
}

// All imports of a file; of a file of exports alone those that give one of `names`.
function keptImports(text: string, names: ReadonlySet<string> | undefined): Import[] {
  const imports = importsOf(text);
  if (!names || !isBarrel(text, imports)) return imports;
  return imports.filter(({ names: given }) => given?.some((name) => names.has(name)) ?? true);
}

function importsOf(text: string): Import[] {
  const statements = /^(import|export) (?:type )?(\*(?: as \w+)?|\{[^}]*\}|[\w$]+)? ?(?:from )?"([^"]+)";$/gm;
  const found = [...text.matchAll(statements)].map(([statement, keyword, given = "", specifier = ""]) => ({
    statement,
    isExport: keyword === "export",
    // What is asked of the other file, not what it is called here.
    names: given.startsWith("{")
      ? given
          .slice(1, -1)
          .split(",")
          .flatMap((name) => /^\s*(?:type )?([\w$]+)/.exec(name)?.[1] ?? [])
      : undefined,
    specifier,
  }));
  const inline = [...text.matchAll(/\bimport\("([^"]+)"\)/g)].map(([statement, specifier = ""]) => ({
    statement,
    isExport: false,
    names: undefined,
    specifier,
  }));
  return [...found, ...inline];
}

function isBarrel(text: string, imports: readonly Import[]): boolean {
  let rest = text.replace(/\/\*[\s\S]*?\*\/|^\/\/.*$/gm, "");
  for (const { statement } of imports) rest = rest.replace(statement, "");
  return rest.trim() === "" && imports.every(({ isExport }) => isExport);
}

// A file of this repository; undefined: of another package.
function targetOf(file: string, specifier: string): string | undefined {
  const [, name, inner = ""] = /^@nodekeeper\/([^/]+)\/?(.*)$/.exec(specifier) ?? [];
  if (name) {
    const path = inner.endsWith(".ts") ? inner.slice(0, -3) : posix.join(inner, "index");
    return `${name}/src/${path}.d.ts`;
  }
  if (!specifier.startsWith(".")) return undefined;
  return posix.join(posix.dirname(file), specifier).replace(/\.(ts|js)$/, ".d.ts");
}

function written(file: string, text: string, names: ReadonlySet<string> | undefined): string {
  const kept = new Set(keptImports(text, names).map(({ statement }) => statement));
  let result = text;
  for (const { statement, specifier } of importsOf(text)) {
    const target = targetOf(file, specifier);
    // A consumer's compiler finds x.d.ts by "./x.js" in every version and setting.
    const path = target && relativePath(file, target.replace(/\.d\.ts$/, ".js"));
    const replaced = path ? statement.replace(`"${specifier}"`, `"${path}"`) : statement;
    result = kept.has(statement)
      ? result.replaceAll(statement, replaced)
      : result.replaceAll(`${statement}\n`, "");
  }
  return result;
}

function relativePath(from: string, to: string): string {
  const path = posix.relative(posix.dirname(from), to);
  return path.startsWith(".") ? path : `./${path}`;
}
