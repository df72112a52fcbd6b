import type { Plugin } from "esbuild";

// The exports that bundles use of modules that are costly to import. A named import that is missing here fails the build.
const namesOfBuiltIns: Readonly<Record<string, readonly string[]>> = {
  "node:crypto": [
    "createCipheriv",
    "createDecipheriv",
    "createHash",
    "hash",
    "hkdfSync",
    "randomBytes",
    "randomUUID",
    "timingSafeEqual",
  ],
  "node:http": [
    "Agent",
    "ClientRequest",
    "IncomingMessage",
    "Server",
    "ServerResponse",
    "createServer",
    "request",
  ],
  "node:https": ["Agent", "Server", "createServer", "request"],
  "node:util": ["isDeepStrictEqual", "parseArgs", "promisify", "styleText"],
};

/**
 * Loads some of Node's modules with `process.getBuiltinModule` instead of an import. An import reads every export, and
 * reading some of them loads further modules: WebSocket of `http` loads Node's own fetch, 13 MB in each process; `util`
 * has an argument parser, a text comparer and worker threads, 3 MB; `crypto` has Web Crypto.
 */
export const leanBuiltIns: Plugin = {
  name: "lean built-in modules",
  setup(bundle) {
    bundle.onResolve({ filter: /^node:(crypto|https?|util)$/ }, ({ path, kind }) =>
      kind === "import-statement" ? { path, namespace: "lean-built-in" } : undefined,
    );
    bundle.onLoad({ filter: /./, namespace: "lean-built-in" }, ({ path }) => ({
      contents: [
        `const module = process.getBuiltinModule(${JSON.stringify(path)});`,
        "const take = (name) => module[name];",
        // Those that a bundle does not use are left out of it.
        ...namesOfBuiltIns[path]!.map((name) => `export const ${name} = /* @__PURE__ */ take("${name}");`),
        "export default module;",
      ].join("\n"),
    }));
  },
};

/** A module of a package that its other modules load and the bundles never use, and what takes its place. */
interface UnusedModule {
  /** Of the module that loads it. */
  importer: RegExp;
  path: string;
  contents: string;
}

const unusedModules: readonly UnusedModule[] = [
  // Loads HTTPS and zlib.
  { importer: /[\\/]prom-client[\\/]/, path: "./lib/pushgateway", contents: "" },
  // With 14 modules of their own: see packages/agent/src/server/base-metrics.ts.
  { importer: /[\\/]prom-client[\\/]/, path: "./lib/defaultMetrics", contents: "" },
  // Writes logs in a worker thread.
  { importer: /[\\/]pino[\\/]/, path: "thread-stream", contents: "" },
  { importer: /[\\/]pino[\\/]/, path: "worker_threads", contents: "exports.isMainThread = true;" },
  // Starts commands that are executables of their own.
  { importer: /[\\/]commander[\\/]/, path: "node:child_process", contents: "" },
  // Reads .proto files for the services of channelz and ORCA, with protobufjs.
  { importer: /[\\/]grpc-js[\\/]/, path: "@grpc/proto-loader", contents: "" },
];

/** Leaves out modules of packages that load much and are never used. */
export const leanPackages: Plugin = {
  name: "lean packages",
  setup(bundle) {
    bundle.onResolve({ filter: /./ }, (asked) => {
      const at = unusedModules.findIndex(
        ({ importer, path }) => path === asked.path && importer.test(asked.importer),
      );
      return at < 0 ? undefined : { path: asked.path, namespace: "unused-module", pluginData: at };
    });
    bundle.onLoad({ filter: /./, namespace: "unused-module" }, ({ pluginData }) => ({
      contents: unusedModules[pluginData]!.contents,
      loader: "js",
    }));
  },
};
