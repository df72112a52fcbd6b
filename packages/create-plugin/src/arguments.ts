import { basename, resolve } from "node:path";
import { parseArgs } from "node:util";
import { type Kind, kinds, type Language, languages } from "./templates.ts";
import { UsageError } from "./usage-error.ts";

export const usage = `Usage: npm create @nodekeeper/plugin [directory] -- [options]

Creates a plugin for Nodekeeper in a directory that is empty or does not exist yet.

  --kind reporter|eviction|driver      what the plugin does (default: asks)
  --language typescript|go|python      default: asks
  --name NAME                          default: the directory's name; of a driver, with .example.com behind it
  -h, --help                           prints this
`;

/** Arguments of the command line. Missing ones are prompted for. */
export interface Arguments {
  directory?: string;
  kind?: Kind;
  language?: Language;
  name?: string;
  help: boolean;
}

/** Complete description of the project to create. */
export interface Choices {
  directory: string;
  kind: Kind;
  language: Language;
  /** Name of the plugin or driver. */
  name: string;
}

/** Parses the command line. Throws `UsageError`, naming the argument. */
export function parseArguments(args: readonly string[]): Arguments {
  const { values, positionals } = parsed(args);
  if (positionals.length > 1) throw new UsageError(`one directory at most; got ${positionals.join(", ")}`);
  const [directory] = positionals;
  return {
    ...(directory === undefined ? {} : { directory }),
    ...(values.kind === undefined ? {} : { kind: oneOf("--kind", kinds, values.kind) }),
    ...(values.language === undefined ? {} : { language: oneOf("--language", languages, values.language) }),
    ...(values.name === undefined ? {} : { name: values.name }),
    help: values.help,
  };
}

function parsed(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        kind: { type: "string" },
        language: { type: "string" },
        name: { type: "string" },
        help: { type: "boolean", short: "h", default: false },
      },
    });
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

/** Returns the value if it is one of `known`. Throws `UsageError` otherwise. */
export function oneOf<T extends string>(what: string, known: readonly T[], value: string): T {
  const found = known.find((each) => each === value);
  if (found) return found;
  throw new UsageError(`${what} must be one of ${known.join(", ")}; got ${JSON.stringify(value)}`);
}

/** Returns the default name of a plugin in this directory. For ".", this is the name of the current directory. */
export function defaultName(directory: string, kind: Kind): string {
  const base = basename(resolve(directory));
  return kind === "driver" ? `${base}.example.com` : base;
}

const NAME = /^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/;
const MOST_LETTERS = 63;

/**
 * Throws `UsageError` unless the name is a DNS subdomain of at most 63 characters. The API requires this of drivers
 * (resource.k8s.io, ResourceSlice spec.driver), and it is also valid for plugins, files and packages.
 */
export function checkName(name: string): void {
  if (name.length <= MOST_LETTERS && NAME.test(name)) return;
  throw new UsageError(
    `name ${JSON.stringify(name)}: a name has at most ${MOST_LETTERS} lower-case letters, digits, "-" and ".", and a letter or digit at both ends and beside each "."`,
  );
}
