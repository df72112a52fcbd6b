import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect } from "vitest";
import { ConfigurationError, type ConfigurationSources, loadConfiguration } from "../index.ts";

/** Required header of a configuration file. */
export const header = "apiVersion: nodekeeper.dev/v1alpha1\nkind: AgentConfiguration\n";

/** Loads configurations in tests. Texts are written to a temporary file. */
export class WrittenConfiguration {
  directory = "";
  file = "";

  constructor() {
    beforeAll(async () => {
      this.directory = await mkdtemp(join(tmpdir(), "nodekeeper-config-"));
      this.file = join(this.directory, "config.yaml");
    });
    afterAll(() => rm(this.directory, { recursive: true }));
  }

  load(sources: Partial<ConfigurationSources> = {}) {
    return loadConfiguration({ flags: {}, env: {}, hostname: "host-1", ...sources });
  }

  async loadText(text: string, sources: Partial<ConfigurationSources> = {}) {
    await writeFile(this.file, text);
    return this.load({ file: this.file, ...sources });
  }

  /** Returns the problems of an invalid configuration as "source|path|message". Fails if the configuration is valid. */
  async problemsOf(loading: Promise<unknown>): Promise<string[]> {
    const error = await loading.then(
      () => expect.fail("the configuration was accepted"),
      (error: unknown) => error,
    );
    expect(error).toBeInstanceOf(ConfigurationError);
    const { code, problems, message } = error as ConfigurationError;
    expect(code).toBe("invalid");
    for (const problem of problems) expect(message).toContain(problem.message);
    return problems.map(
      ({ source, path, message }) => `${source.replace(this.directory, "")}|${path}|${message}`,
    );
  }
}
