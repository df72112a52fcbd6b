import { configurationJsonSchema } from "@nodekeeper/api/settings";
import { plainText } from "@nodekeeper/api/text";
import { defaultConfigurationYaml, loadConfiguration } from "../config/index.ts";
import { type Output, type PageFormat, paint, printAs, printJson } from "./output.ts";
import { configurationSources } from "./settings-options.ts";

/** `nodekeeper config default`: prints the default configuration with comments. */
export function configDefaultCommand(output: Output): void {
  output.write(defaultConfigurationYaml());
}

/** `nodekeeper config schema`: prints the JSON schema, for editors and admission. */
export function configSchemaCommand(output: Output): void {
  printJson(output, configurationJsonSchema(), 2);
}

/**
 * `nodekeeper config validate`: loads the configuration as `run` does and prints the source of each setting that is not
 * the default. Throws ConfigurationError with every problem.
 */
export async function configValidateCommand(
  file: string | undefined,
  options: Record<string, unknown>,
  output: Output,
): Promise<void> {
  const { configuration, warnings, origins } = await loadConfiguration(
    configurationSources({ ...options, ...(file ? { config: file } : {}) }),
  );
  const result = { configuration, warnings, origins: Object.fromEntries(origins) };
  printAs(output, options.output as PageFormat, result, () =>
    [
      ...[...origins].map(([path, origin]) =>
        paint(output, "dim", plainText(`${path}: set by ${origin}`, 1_000)),
      ),
      ...warnings.map((warning) => paint(output, "yellow", `warning: ${plainText(warning, 1_000)}`)),
      `${paint(output, "green", "valid")}${file ? `: ${file}` : ""}\n`,
    ].join("\n"),
  );
}
