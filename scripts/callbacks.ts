// Cycles of callbacks between the classes of a module, which the graph of imports does not show: A calls B, and B calls
// A through a function that its constructor received. `node scripts/callbacks.ts` lists them.
//
// It reads source text, not types. It sees instances in variables, fields and options that are declared with the class or
// assigned from `new`, calls of their methods, and arrow functions, `this` and `.bind(this)` in the arguments of `new`.
// It doesn't see callbacks through functions that construct objects, listeners registered by a method, assigned fields,
// or interfaces that a class implements. Classes of different modules are ignored: their imports go in one direction.
// So are classes that several others construct: such a mechanism (a cache, a queue) knows none of them.
import { glob, readFile } from "node:fs/promises";
import { join } from "node:path";
import { root } from "./programs.ts";

interface Call {
  module: string;
  from: string;
  to: string;
  isCallback: boolean;
}

interface Span {
  start: number;
  end: number;
  /** The class that is declared or constructed here. */
  name: string;
}

/** The cycles in the repository at `root`, one line each. */
export async function findCallbackProblems(root: string): Promise<string[]> {
  const files = new Map<string, string>();
  for await (const file of glob("packages/*/src/**/*.{ts,tsx}", { cwd: root }))
    if (!/\.test\.tsx?$|\/(testing|fixtures|gen)\//.test(file))
      files.set(file, await readFile(join(root, file), "utf8"));
  return callbackCycles(files).map(
    (cycle) => `${cycle}, which calls it: keep state in one place, and pass keys or readers`,
  );
}

/** The callbacks that close a cycle in files, by path: "module: B calls back A", sorted. */
export function callbackCycles(files: ReadonlyMap<string, string>): string[] {
  const sources = [...files].map(([path, source]) => ({
    path,
    module: moduleOf(path),
    text: withoutTexts(source),
  }));
  const declared = sources.flatMap(({ module, text }) =>
    classesIn(text).map(({ name }) => ({ module, name })),
  );
  const modules = new Map(declared.map(({ module, name }) => [name, module]));
  const calls = sources.flatMap(({ module, text }) => {
    const ownClasses = declared.filter((each) => each.module === module);
    return callsIn(text, new Map([...modules, ...ownClasses.map(({ name }) => [name, module] as const)]));
  });
  const constructors = Map.groupBy(sources.flatMap(constructionsIn), ({ name }) => name);
  const isMechanism = (name: string) => new Set(constructors.get(name)?.map(({ place }) => place)).size > 1;
  const cycles = calls
    .filter((call) => call.isCallback && !isMechanism(call.from) && reaches(calls, call))
    .map(({ module, from, to }) => `${module}: ${from} calls back ${to}`);
  return [...new Set(cycles)].sort();
}

function moduleOf(path: string): string {
  return /^packages\/(?:agent|core)\/src\/[^/]+|^packages\/[^/]+/.exec(path)?.[0] ?? path;
}

/** Without the contents of comments and quoted texts; positions stay. */
function withoutTexts(source: string): string {
  const texts = /\/\*[\s\S]*?\*\/|\/\/.*|"(?:[^"\\\n]|\\.)*"/g;
  return source.replace(texts, (text) => text.replace(/[^\n]/g, " "));
}

function classesIn(text: string): Span[] {
  return [...text.matchAll(/\bclass (\w+)[^{]*\{/g)].map(({ 0: head, 1: name, index }) => {
    const start = index + head.length;
    return { start, end: endOf(text, start), name: name! };
  });
}

/** The classes that a file constructs, each with the class or file in which it does. */
function constructionsIn({ path, text }: { path: string; text: string }) {
  const classes = classesIn(text);
  return [...text.matchAll(/\bnew (\w+)/g)].map(({ 1: name, index }) => ({
    name: name!,
    place: `${path} ${innermost(classes, index)?.name}`,
  }));
}

/** @param known modules by the names of their classes */
function callsIn(text: string, known: ReadonlyMap<string, string>): Call[] {
  const classes = classesIn(text);
  const constructed = [...text.matchAll(/\bnew (\w+)(?:<[^()]*>)?\(/g)]
    .filter(({ 1: name }) => known.has(name!))
    .map(({ 0: head, 1: name, index }): Span => {
      const start = index + head.length;
      return { start, end: endOf(text, start), name: name! };
    });
  const closures = [...text.matchAll(/=>/g)].map(({ index }) => ({
    start: index,
    end: endOf(text, index + 2, ",;"),
  }));
  const holders = new Map<string, string>();
  for (const [, name, type, value] of text.matchAll(
    /(\w+)[?!]?(?:: (?:readonly )?(?:(?:Pick|Omit|Partial|Readonly)<)?(\w+)\b|(?::[^=;,(){}]+)? = new (\w+)\b)/g,
  ))
    for (const each of [type, value]) if (each && known.has(each)) holders.set(name!, each);

  const call = (at: number, to: string | undefined, isReference = false): Call[] => {
    const argument = innermost(constructed, at);
    const inClosure = argument && closures.some((each) => each.start > argument.start && contains(each, at));
    const isCallback = argument !== undefined && (inClosure === true || isReference);
    const from = isCallback ? argument.name : innermost(classes, at)?.name;
    const module = known.get(from ?? "");
    if (!from || !to || !module || from === to || module !== known.get(to)) return [];
    return [{ module, from, to, isCallback }];
  };
  return [
    ...[...text.matchAll(/(\w+)[?!]?\.\w+\(/g)].flatMap(({ 1: name, index }) =>
      call(index, holders.get(name!)),
    ),
    ...[...text.matchAll(/\bthis\.#?\w+\(/g)].flatMap(({ index }) =>
      call(index, innermost(classes, index)?.name),
    ),
    ...[...text.matchAll(/[(,{]\s*this\s*[,)}]|: this\b(?!\.)/g)].flatMap(({ index }) =>
      call(index + 1, innermost(classes, index)?.name, true),
    ),
  ];
}

function innermost(spans: readonly Span[], at: number): Span | undefined {
  return spans.filter((span) => contains(span, at)).sort((a, b) => b.start - a.start)[0];
}

function contains({ start, end }: { start: number; end: number }, at: number): boolean {
  return start <= at && at < end;
}

/** Where the brackets that are open at `start` close, or one of `separators` follows outside of inner ones. */
function endOf(text: string, start: number, separators = ""): number {
  let depth = 0;
  for (let at = start; at < text.length; at++) {
    const letter = text[at]!;
    if ("([{".includes(letter)) depth++;
    else if (")]}".includes(letter) && --depth < 0) return at;
    else if (depth === 0 && separators.includes(letter)) return at;
  }
  return text.length;
}

/** Whether a chain of calls leads from what is called back to the caller. */
function reaches(calls: readonly Call[], { module, from, to }: Call): boolean {
  const seen = new Set([to]);
  for (const name of seen)
    for (const call of calls) if (call.module === module && call.from === name) seen.add(call.to);
  return seen.has(from);
}

if (import.meta.main) for (const problem of await findCallbackProblems(root)) console.log(problem);
