import type { Choices } from "./arguments.ts";
import type { Language } from "./templates.ts";

// Used by `npm run check` of TypeScript projects. Node runs TypeScript without compilation.
const typescriptTools = { typescript: "^7.0.2", "@types/node": "^24.0.0" };

/** Scripts that build, start and test the project. */
interface Scripts {
  build?: string;
  check?: string;
  start: string;
  test: string;
}

// The test of the template, until the author removes it.
const nodeTest = "node --test --test-force-exit";

/**
 * Returns the project's package.json. Go and Python projects need it for their test.
 * @param version version of Nodekeeper's packages
 */
export function manifestOf(choices: Choices, version: string): unknown {
  const { name, language } = choices;
  const wanted = `^${version}`;
  const testing = { "@nodekeeper/testing": wanted, nodekeeper: wanted };
  return {
    name,
    version: "0.1.0",
    private: true,
    type: "module",
    engines: { node: ">=24" },
    scripts: scriptsOf(choices),
    ...(language === "typescript" ? { dependencies: { "@nodekeeper/sdk": wanted } } : {}),
    devDependencies: language === "typescript" ? { ...testing, ...typescriptTools } : testing,
  };
}

/** Returns the scripts that build, start and test the project. */
export function scriptsOf({ language, name }: Choices): Scripts {
  if (language === "typescript") return { check: "tsc", start: "node main.ts", test: nodeTest };
  if (language === "go")
    return {
      build: `go build -o ${name} .`,
      check: "go vet .",
      start: `./${name}`,
      test: `go test . && ${nodeTest}`,
    };
  const steps = ["python3 -m venv .venv", ".venv/bin/pip install --quiet -r requirements.txt"];
  return {
    build: steps.join(" && "),
    start: ".venv/bin/python main.py",
    // Since Python 3.12 the exit status is 5 if there are no tests.
    test: `(.venv/bin/python -m unittest || [ $? -eq 5 ]) && ${nodeTest}`,
  };
}

/** Returns the lines of the project's .gitignore. */
export function ignoredFiles({ language, name }: Choices): string[] {
  if (language === "typescript") return ["node_modules/"];
  if (language === "go") return ["node_modules/", `/${name}`];
  return ["node_modules/", ".venv/", "__pycache__/"];
}

/** Compiler options of a project that Node runs from source. */
export const compilerOptions: Readonly<Record<string, unknown>> = {
  target: "es2024",
  lib: ["es2024", "esnext.disposable"],
  module: "nodenext",
  types: ["node"],
  strict: true,
  verbatimModuleSyntax: true,
  erasableSyntaxOnly: true,
  allowImportingTsExtensions: true,
  skipLibCheck: true,
  noEmit: true,
};

/** Display names of the languages. */
export const languageNames: Readonly<Record<Language, string>> = {
  typescript: "TypeScript",
  go: "Go",
  python: "Python",
};
