export const kinds = ["reporter", "eviction", "driver"] as const;
export const languages = ["typescript", "go", "python"] as const;
export type Kind = (typeof kinds)[number];
export type Language = (typeof languages)[number];

/** Files of a project: path in the project to path in the repository. */
export interface Template {
  /** Files in which the sample's name is replaced with the plugin's. */
  named: Readonly<Record<string, string>>;
  /** Files and directories that are copied unchanged. */
  copied: Readonly<Record<string, string>>;
  /** For Python: proto files from which modules are generated, relative to proto/. */
  protoFiles?: readonly string[];
  /** Whether all instances on a node use one socket, so that a new instance can start only after the old one ended. */
  sharesSocket?: boolean;
}

/** Names of the plugins in examples/. */
export const sampleNames: Readonly<Record<Kind, string>> = {
  reporter: "example-reporter",
  eviction: "example-eviction",
  driver: "accelerators.example.com",
};

const registration = "pluginregistration/v1/api.proto";
const driverProtos = [
  "nodekeeper/devices/v1alpha1/api.proto",
  "nodekeeper/devices/v1alpha1/preparation.proto",
  registration,
];

/** Templates by language and kind: the sample plugins in examples/. */
export const templates: Readonly<Record<Language, Readonly<Record<Kind, Template>>>> = {
  typescript: {
    reporter: typescript("reporter", "widgets.ts"),
    eviction: typescript("eviction", "leaks.ts"),
    driver: typescript("driver", "accelerators.ts", "preparation.ts"),
  },
  go: {
    reporter: goPlugin("reporter"),
    eviction: goPlugin("eviction"),
    driver: {
      named: { "main.go": "examples/driver-go/main.go" },
      copied: {
        ...Object.fromEntries(
          ["go.mod", "go.sum", "gen", "buf.gen.yaml"].map((name) => [name, `examples/driver-go/${name}`]),
        ),
        ...protos(driverProtos),
        ...testOf("driver"),
      },
    },
  },
  python: {
    reporter: python("reporter", ["reporterplugin/v1alpha1/api.proto", registration]),
    eviction: python("eviction", [
      "evictionplugin/v1alpha1/api.proto",
      "k8s/core/v1/api.proto",
      registration,
    ]),
    driver: python("driver", driverProtos),
  },
};

function typescript(kind: Kind, ...more: string[]): Template {
  const copied = Object.fromEntries(more.map((name) => [name, `examples/${kind}/${name}`]));
  return { named: { "main.ts": `examples/${kind}/main.ts` }, copied: { ...copied, ...testOf(kind) } };
}

// Based on katalyst-api. The plugins share a module in examples/.
function goPlugin(kind: Kind): Template {
  const shared = ["go.mod", "go.sum"].map((name) => [name, `examples/plugins-go/${name}`]);
  return {
    named: { "main.go": `examples/plugins-go/${kind}/main.go` },
    copied: { ...Object.fromEntries(shared), ...testOf(kind) },
    sharesSocket: true,
  };
}

function python(kind: Kind, protoFiles: readonly string[]): Template {
  const directory = `examples/${kind}-python`;
  return {
    named: { "main.py": `${directory}/main.py` },
    copied: { "requirements.txt": `${directory}/requirements.txt`, ...protos(protoFiles), ...testOf(kind) },
    protoFiles,
  };
}

function testOf(kind: Kind): Record<string, string> {
  return {
    "plugin.test.mjs": `examples/tests/${kind}.test.mjs`,
    "start-plugin.mjs": "examples/tests/start-plugin.mjs",
  };
}

function protos(paths: readonly string[]): Record<string, string> {
  return Object.fromEntries(paths.map((path) => [`proto/${path}`, `proto/${path}`]));
}
