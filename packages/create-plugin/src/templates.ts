export const kinds = ["reporter", "eviction", "driver"] as const;
export const languages = ["typescript", "go", "python"] as const;
export type Kind = (typeof kinds)[number];
export type Language = (typeof languages)[number];

/** Files of a project: path in the project to path in the repository. */
export interface Template {
  /** Files in which the sample's name is replaced with the plugin's, and the SDK's directory with the project's copy. */
  named: Readonly<Record<string, string>>;
  /** Files and directories that are copied unchanged. */
  copied: Readonly<Record<string, string>>;
}

/** Names of the plugins in examples/. */
export const sampleNames: Readonly<Record<Kind, string>> = {
  reporter: "example-reporter",
  eviction: "example-eviction",
  driver: "accelerators.example.com",
};

/** Templates by language and kind: the sample plugins in examples/. */
export const templates: Readonly<Record<Language, Readonly<Record<Kind, Template>>>> = {
  typescript: {
    reporter: typescript("reporter", "widgets.ts"),
    eviction: typescript("eviction", "leaks.ts"),
    driver: typescript("driver", "accelerators.ts", "preparation.ts"),
  },
  go: {
    reporter: go("reporter", "examples/plugins-go/reporter/main.go", "examples/plugins-go"),
    eviction: go("eviction", "examples/plugins-go/eviction/main.go", "examples/plugins-go"),
    driver: go("driver", "examples/driver-go/main.go", "examples/driver-go"),
  },
  python: { reporter: python("reporter"), eviction: python("eviction"), driver: python("driver") },
};

function typescript(kind: Kind, ...more: string[]): Template {
  const copied = Object.fromEntries(more.map((name) => [name, `examples/${kind}/${name}`]));
  return { named: { "main.ts": `examples/${kind}/main.ts` }, copied: { ...copied, ...testOf(kind) } };
}

function go(kind: Kind, main: string, module: string): Template {
  return {
    named: { "main.go": main, "go.mod": `${module}/go.mod` },
    copied: { "go.sum": `${module}/go.sum`, "sdk-go": "sdk-go", ...testOf(kind) },
  };
}

function python(kind: Kind): Template {
  const named = ["main.py", "requirements.txt"].map((name) => [name, `examples/${kind}-python/${name}`]);
  return { named: Object.fromEntries(named), copied: { "sdk-python": "sdk-python", ...testOf(kind) } };
}

function testOf(kind: Kind): Record<string, string> {
  return {
    "plugin.test.mjs": `examples/tests/${kind}.test.mjs`,
    "start-plugin.mjs": "examples/tests/start-plugin.mjs",
  };
}

/** Returns whether a file is copied to projects. Omits the SDKs' tests, READMEs, code generators and Python caches. */
export function isTemplateFile(path: string): boolean {
  return !/_test\.go$|\/sdk-\w+\/(tests(\/|$)|README)|__pycache__|\/(buf\.gen\.yaml|generate\.py)$/.test(
    path,
  );
}
