import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { foreignAddresses } from "../scripts/docs/foreign.ts";
import { findDocsProblems } from "../scripts/docs/links.ts";
import { readMarkdown } from "../scripts/docs/markdown.ts";
import { groupsOf, markdownFiles } from "../scripts/docs/pages.ts";
import { sectionsOf } from "../scripts/docs/search-index.ts";
import { serveDirectory } from "../scripts/docs/serve.ts";
import { buildSite } from "../scripts/docs/site.ts";
import * as repository from "../scripts/programs.ts";
import { findBlockProblems } from "./support/code-blocks.ts";
import { isAsShown } from "./support/doc-output.ts";

let root: string;
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "nodekeeper-docs-"));
});
afterEach(() => rm(root, { recursive: true }));

async function write(files: Record<string, string>): Promise<void> {
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), text);
  }
}

describe("a page", () => {
  it("is read with its title, anchors as on GitHub, links and blocks with their lines", () => {
    const text = [
      "# The `agent`'s page",
      "See [one](one.md#a) and",
      "[two](two.md).",
      "",
      "## Q & A: what_now?",
      "## Twice",
      "## Twice",
      "| a | b |",
      "|---|---|",
      "| x | [three](#twice-1) |",
      "",
      "- in a list:",
      "  ```sh run=dev",
      "  true",
      "  ```",
    ].join("\n");
    expect(readMarkdown(text)).toMatchObject({
      title: "The agent's page",
      headings: [
        {
          id: "the-agents-page",
          text: "The agent's page",
          depth: 1,
          below: "See [one](one.md#a) and\n[two](two.md).\n\n",
        },
        { id: "q--a-what_now", text: "Q & A: what_now?", depth: 2, below: "" },
        { id: "twice", text: "Twice", depth: 2, below: "" },
        { id: "twice-1", text: "Twice", depth: 2 },
      ],
      links: [
        { target: "one.md#a", line: 2 },
        { target: "two.md", line: 3 },
        { target: "#twice-1", line: 10 },
      ],
      blocks: [{ language: "sh", info: "run=dev", text: "true", line: 13 }],
    });
  });
});

describe("npm run check finds", () => {
  it("pages that the index does not list, dead links, and dead mentions in code", async () => {
    await write({
      "docs/index.md": "# Index\n## Start\n- [A](a.md): first\n- [Code](../packages/x.ts)\n",
      "docs/a.md":
        '# A\n[b](b.md#no), [c](c.md)\n[self](#a) [far](https://example.com) [out](../../etc)\n\n<img src="x.png">\n',
      "docs/b.md": "# B\n",
      "packages/x.ts": "// docs/b.md\n// docs/b.md#b, docs/b.md#c, other-docs/z.md\n// docs/z.md\n",
    });
    expect(await findDocsProblems(root)).toEqual([
      "docs/b.md: not listed in docs/index.md",
      "docs/a.md:2: b.md#no: docs/b.md has no heading #no",
      "docs/a.md:2: c.md: there is no docs/c.md",
      "docs/a.md:3: ../../etc leads out of the repository",
      "docs/a.md:5: x.png: there is no docs/x.png",
      "packages/x.ts:2: docs/b.md#c: docs/b.md has no heading #c",
      "packages/x.ts:3: docs/z.md: there is no docs/z.md",
    ]);
  });
});

describe("commands in a page", () => {
  it("name what runs them, and it is there", async () => {
    const blocks = [
      ["sh", "nodekeeper pods"],
      ["sh run=somewhere", "nodekeeper pods"],
      ["sh run=dev", "nodekeeper pods"],
      ['sh not-run="needs a registry"', "push it"],
      ['sh not-run=""', "push it"],
      ["console", "$ nodekeeper pods"],
      ["sh run=test/a.test.ts", "helm install"],
      ["sh run=test/b.test.ts", "helm install"],
      ["sh run=test/c.test.ts", "helm install"],
      [
        "sh run=repository",
        "npm ci && npm run check -- --fast  # quick\nnpx vitest run -t x test/a \\\n  test/<name>",
      ],
      ["sh run=repository", "npm run missing"],
      ["sh run=repository", "npm run bench -- speed\nnpm run bench -- taste"],
      ["sh run=repository", "npm run try -- --seeds 5 --quick\nnpm run try -- --seed 5"],
      ["sh run=repository", "npx vitest run nowhere/a"],
      ["sh run=repository", "rm -rf ."],
      ["yaml", "a: 1"],
      ["", "rm -rf /"],
    ];
    await write({
      "docs/index.md": "# Index\n## All\n- [A](a.md)\n",
      "docs/a.md": `# A\n${blocks.map(([info, text]) => `\`\`\`${info}\n${text}\n\`\`\`\n`).join("")}`,
      "examples/README.md": "# B\nBy hand:\n\n    node main.js\n",
      "package.json": JSON.stringify({ scripts: { check: "", bench: "", try: "node try.ts" } }),
      "bench/speed.ts": "",
      "try.ts": 'const options = ["--seeds", "--quick"];',
      "test/a.test.ts": "blocksOf('docs/a.md')",
      "test/b.test.ts": "",
    });
    const noLanguage = "a block without a language: sh or console for commands, text for output";
    const expected = 'expected run=dev, run=repository, run=test/….test.ts or not-run="why"';
    expect(await findBlockProblems(root, await markdownFiles(root))).toEqual([
      `docs/a.md:54: ${noLanguage}`,
      `docs/a.md:2: commands without a runner: ${expected}`,
      `docs/a.md:5: commands without a runner: ${expected}`,
      `docs/a.md:14: commands without a runner: ${expected}`,
      `docs/a.md:17: commands without a runner: ${expected}`,
      "docs/a.md:23: test/b.test.ts does not read a.md",
      "docs/a.md:26: there is no test/c.test.ts",
      "docs/a.md:34: package.json has no script missing",
      "docs/a.md:37: there is no bench/taste.ts",
      "docs/a.md:41: try has no option --seed",
      "docs/a.md:45: there is no nowhere for nowhere/a",
      'docs/a.md:48: "rm -rf ." is no command of the repository',
      `examples/README.md:4: ${noLanguage}`,
    ]);
  });
});

describe("an output in a page", () => {
  const shown = "NAME  AGE\na     5s\n...\nevicted at 2026-11-21T04:24:22.520Z: 93 > 90";
  it.each([
    [
      "times, ages and widths of columns differ",
      "NAME AGE\na    12m\nevicted at 2026-11-28T03:10:45.1Z: 93 > 90\n",
    ],
    ["'...' stands for lines", "NAME AGE\na 5s\nb 5s\nc 5s\nevicted at 2026-11-28T03:10:45.1Z: 93 > 90"],
  ])("is what a command prints if %s", (_, printed) => expect(isAsShown(shown, printed)).toBe(true));
  it.each([
    ["a value differs", "NAME AGE\na 5s\nevicted at 2026-11-28T03:10:45.1Z: 95 > 90"],
    ["a line is missing", "a 5s\nevicted at 2026-11-28T03:10:45.1Z: 93 > 90"],
    ["there is one more", "NAME AGE\na 5s\nevicted at 2026-11-28T03:10:45.1Z: 93 > 90\nfailed"],
  ])("is not if %s", (_, printed) => expect(isAsShown(shown, printed)).toBe(false));
});

describe("this repository's pages", () => {
  it("have a runner for each block of commands", async () => {
    expect(await findBlockProblems(repository.root, await markdownFiles(repository.root))).toEqual([]);
  });

  it("name metrics that exist", async () => {
    // The Python package is named like one.
    const files = await markdownFiles(repository.root);
    const metrics = new Set(files.get("docs/metrics.md")?.match(/\bnodekeeper_\w+/g));
    const unknown = [...files].flatMap(([path, text]) =>
      path === "CHANGELOG.md"
        ? []
        : (text.match(/\bnodekeeper_[a-z_]+[a-z](?![*_\w])/g) ?? [])
            .filter((name) => name !== "nodekeeper_sdk")
            .filter((name) => !metrics.has(name.replace(/_(bucket|sum|count)$/, "")))
            .map((name) => `${path}: ${name}`),
    );
    expect(unknown).toEqual([]);
  });
});

describe("addresses that a page loads", () => {
  it.each([
    ['<script src="https://cdn.example.com/a.js"></script>', "https://cdn.example.com/a.js"],
    ["<img alt=x src=//example.com/a.png>", "//example.com/a.png"],
    ['<link rel="stylesheet" href="https://example.com/a.css">', "https://example.com/a.css"],
    ["@import url('https://example.com/font');", "https://example.com/font"],
    ["a { background: url(//example.com/a.png) }", "//example.com/a.png"],
    ['fetch("https://example.com/beacon")', "https://example.com/beacon"],
  ])("%s", (text, address) => expect(foreignAddresses(text)).toEqual([address]));

  it.each([
    ['<a href="https://example.com">read on</a>'],
    ['<link rel="stylesheet" href="../style.css">'],
    ['<svg xmlns="http://www.w3.org/2000/svg">'],
    ['<link rel="icon" href="data:,">'],
  ])("are none in %s", (text) => expect(foreignAddresses(text)).toEqual([]));
});

describe("the site", () => {
  const pages = {
    "docs/index.md": "# Index\n## Start\n- [A <page>](a.md): first\n## More\n- [B](deep/b.md)\n",
    "docs/a.md":
      '# A\n## Part one\n[b](deep/b.md#b) [code](../examples)\n```sh not-run="needs a registry"\npush <x>\n```\n',
    "docs/deep/b.md": "# B\n```mermaid\nflowchart TD\n  one --> two\n```\n",
    "docs/images/x.png": "an image",
    "examples/x.ts": "a < b\n",
  };

  it("has the pages, what they link to, a sidebar, and diagrams that are drawn", async () => {
    await write(pages);
    const out = join(root, "dist");
    expect((await buildSite(root, out)).sort()).toEqual([
      ...["a.html", "deep/b.html", "index.html"],
      ...["repository/examples/index.html", "repository/examples/x.ts.html"],
    ]);
    expect(await readFile(join(out, "images/x.png"), "utf8")).toBe("an image");
    const a = await readFile(join(out, "a.html"), "utf8");
    expect(a).toContain('<a href="a.html" aria-current="page">A &lt;page&gt;</a>');
    expect(a).toContain('<h2 id="part-one">');
    expect(a).toContain('<a href="deep/b.html#b">b</a> <a href="repository/examples/index.html">code</a>');
    expect(a).toContain(
      'push &lt;x&gt;\n</code></pre>\n<p class="note">Not run by the project\'s tests: needs a registry.</p>',
    );
    const b = await readFile(join(out, "deep/b.html"), "utf8");
    expect(b).toContain('<a href="../a.html">A &lt;page&gt;</a>');
    expect(b).toMatch(/<svg [\s\S]*>one<[\s\S]*>two<[\s\S]*<\/svg>/);
    expect(foreignAddresses(b)).toEqual([]);
    expect(await readFile(join(out, "repository/examples/x.ts.html"), "utf8")).toContain("a &lt; b");
  });

  it("has pictures where pages of any directory show them, and loads none from elsewhere", async () => {
    const picture = (path: string) => `# A\n\n<img src="${path}">\n`;
    await write({
      ...pages,
      "docs/a.md": `${picture("images/x.png")}\n[readme](../README.md)\n`,
      "docs/deep/b.md": picture("../images/x.png"),
      "README.md": `${picture("docs/images/x.png")}\n[![ci](https://example.com/badge.svg)](https://example.com/)\n`,
    });
    const out = join(root, "dist");
    await buildSite(root, out);
    const read = (path: string) => readFile(join(out, path), "utf8");
    expect(await read("a.html")).toContain('<img src="images/x.png">');
    expect(await read("deep/b.html")).toContain('<img src="../images/x.png">');
    const readme = await read("repository/README.html");
    expect(readme).toContain('<img src="../images/x.png">');
    expect(readme).toContain('<a href="https://example.com/">ci</a>');
    expect(foreignAddresses(readme)).toEqual([]);
  });

  it("is served on the loopback, and no file outside of it", async () => {
    await write({ ...pages, "secret.html": "secret" });
    await buildSite(root, join(root, "dist"));
    using server = await serveDirectory(join(root, "dist"), 0);
    const read = async (path: string) => {
      const response = await fetch(server.url + path);
      return `${response.status} ${response.headers.get("content-type")}`;
    };
    expect(await read("")).toBe("200 text/html; charset=utf-8");
    expect(await read("style.css")).toBe("200 text/css");
    expect(await read("%2e%2e%2fsecret.html")).toBe("404 null");
  });

  it("names a page's sections beside it, if there are more than a reader sees at once", async () => {
    const sections = (count: number) =>
      Array.from({ length: count }, (_, at) => `## S <${at}>\n### Below\n`).join("");
    await write({ ...pages, "docs/a.md": `# A\n${sections(3)}`, "docs/deep/b.md": `# B\n${sections(2)}` });
    const out = join(root, "dist");
    await buildSite(root, out);
    const contents = async (path: string) =>
      /<nav class="contents"[\s\S]*<\/nav>/.exec(await readFile(join(out, path), "utf8"))?.[0];
    expect((await contents("a.html"))?.match(/<li>.*<\/li>/g)).toEqual([
      '<li><a href="#s-0">S &lt;0&gt;</a></li>',
      '<li><a href="#s-1">S &lt;1&gt;</a></li>',
      '<li><a href="#s-2">S &lt;2&gt;</a></li>',
    ]);
    expect(await contents("deep/b.html")).toBeUndefined();
  });

  it("can be searched by section, without the marks of Markdown", () => {
    const page =
      "# A `page`\nFirst.\n## Part\n[a link](b.md) and\n\n| x | y |\n|---|---|\n| 1 | *2* |\n\n```sh run=x\npush\n```\n## Part\n";
    expect(sectionsOf(readMarkdown(page), "a.html")).toEqual([
      { page: "A page", heading: "", address: "a.html", text: "First." },
      { page: "A page", heading: "Part", address: "a.html#part", text: "a link and x y 1 2 push" },
      { page: "A page", heading: "Part", address: "a.html#part-1", text: "" },
    ]);
  });

  it("takes its groups from the index", () => {
    expect(groupsOf(pages["docs/index.md"])).toEqual([
      { title: "Start", pages: [{ title: "A <page>", path: "docs/a.md" }] },
      { title: "More", pages: [{ title: "B", path: "docs/deep/b.md" }] },
    ]);
  });
});
