import { type ParseArgsConfig, parseArgs } from "node:util";

/**
 * Parses the command line and returns the result of `read`. `--help` prints `help` and exits with 0. Unknown options
 * and errors thrown by `read` are printed, followed by `help`, and exit with 2.
 */
export function readArguments<T extends ParseArgsConfig, R>(
  help: string,
  config: T,
  read: (parsed: ReturnType<typeof parseArgs<T>>) => R,
): R {
  try {
    const { values, positionals } = parseArgs({
      ...config,
      options: { ...config.options, help: { type: "boolean" } },
    });
    if (!(values as { help?: boolean }).help)
      return read({ values, positionals } as ReturnType<typeof parseArgs<T>>);
    console.log(help);
    process.exit(0);
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${help}`);
    process.exit(2);
  }
}
