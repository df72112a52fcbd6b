import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { until } from "@nodekeeper/testing/until";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Kubectl } from "./kubectl.ts";
import { kubectlScript } from "./testing/kubectl-script.ts";

// What kubectl writes to standard error, with a script for kubectl. The texts are those of kubectl 1.36.
let directory: string;
let shown: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "nk-kubectl-"));
  shown = "";
  vi.spyOn(process.stderr, "write").mockImplementation((text) => {
    shown += text;
    return true;
  });
});

afterEach(() => {
  vi.restoreAllMocks();
  rmSync(directory, { recursive: true });
});

/** A kubectl that is these lines of shell. */
const kubectl = (script: string, maxOutputBytes?: number) =>
  new Kubectl(kubectlScript(directory, script), [], maxOutputBytes);

/** A kubectl that writes a text to standard error and ends. */
function kubectlWriting(text: string, status: number): Kubectl {
  writeFileSync(join(directory, "text"), text);
  return kubectl(`cat text >&2\nexit ${status}`);
}

const get = ["get", "pods"];
const log = (text: string) => `E1122 10:49:23.239295   18200 memcache.go:265] "Unhandled Error" ${text}\n`;
const refused = log(`err="couldn't get current server API group list: connect: connection refused"`);

const hint = `
It looks like you are trying to use a client-go credential plugin that is not installed.

To learn more about this feature, consult the documentation available at:
      https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins
`;
const missing = `getting credentials: exec: executable kubelogin not found`;
const missingLog = log(
  `err=<\n${`couldn't get current server API group list: ${missing}\n${hint}`.replace(/^/gm, "\t")}\n >`,
);
const forbiddenLog = log(`err="couldn't get resource list for metrics.k8s.io/v1beta1: x is forbidden"`);
const notFound = `Error from server (NotFound): pods "web" not found`;
const forbidden = `Error from server (Forbidden): pods is forbidden: User "ann" cannot list resource "pods"`;
const connection =
  "The connection to the server 127.0.0.1:1 was refused - did you specify the right host or port?";

describe("the error of a kubectl that failed", () => {
  it.each([
    [
      "of a credential plugin that is not installed is its first line",
      `${missingLog.repeat(5)}Unable to connect to the server: ${missing}\n${hint}`,
      { code: "unauthenticated", message: `kubectl get: Unable to connect to the server: ${missing}` },
    ],
    ["is its line", `${notFound}\n`, { code: "notFound", message: `kubectl get: ${notFound}` }],
    ["needs no line break", forbidden, { code: "forbidden", message: `kubectl get: ${forbidden}` }],
    [
      "is not a line of its log, nor has it the code of one",
      `${forbiddenLog}${refused.repeat(4)}${connection}\n`,
      { code: "unavailable", message: `kubectl get: ${connection}` },
    ],
    [
      "is not the usage behind it",
      "error: unknown flag: --bogus\nSee 'kubectl get --help' for usage.\n",
      { code: "unavailable", message: "kubectl get: unknown flag: --bogus" },
    ],
    [
      "comes behind those of a credential plugin, each once",
      `error: no cached token\nerror: no cached token\n${forbidden}\n`,
      { code: "forbidden", message: `kubectl get: no cached token; ${forbidden}` },
    ],
    [
      "is the last line where none is known as an error",
      `x\nServer returned an unexpected response: y\n\n  z\n`,
      {
        code: "unavailable",
        message: "kubectl get: exited with 3: Server returned an unexpected response: y",
      },
    ],
    ["may be absent", "", { message: "kubectl get: exited with 3 and no message" }],
  ])("%s", async (_, text, expected) => {
    await expect(kubectlWriting(text, 3).run(get)).rejects.toMatchObject({ id: "NK1715", ...expected });
  });

  it("is not shown a second time, nor are its log and what it repeats of it; all else is", async () => {
    const text = `${missingLog.repeat(5)}Unable to connect to the server: ${missing}\n${hint}`;
    await expect(kubectlWriting(text, 1).run(get)).rejects.toThrow(missing);
    expect(shown).toBe(hint);
  });

  it("is that of a port-forward too", async () => {
    const text = `error: error upgrading connection: pods "agent" is forbidden: User "ann" cannot create resource "pods/portforward"`;
    await expect(kubectlWriting(text, 1).forward("nodekeeper", "agent", 10_290)).rejects.toMatchObject({
      code: "forbidden",
      message: `kubectl port-forward: ${text.slice("error: ".length)}`,
    });
  });
});

describe("what is no error", () => {
  // It ends when the test has seen what it is about.
  const waiting = (before: string) => kubectl(`${before}\nuntil [ -e seen ]; do sleep 0.05; done\necho done`);
  const showsWhileRunning = async (script: string, text: string) => {
    const running = waiting(script).run(get);
    await until(`${text} is shown`, () => shown.includes(text), { explain: () => shown });
    writeFileSync(join(directory, "seen"), "");
    expect(await running).toBe("done\n");
  };

  it.each([
    ["a line behind the log", "open https://login", "\\n"],
    ["a prompt without a line break behind the log", "Enter password: ", ""],
    ["a prompt that starts as an error does", "User name: ", ""],
  ])("is shown at once: %s", async (_, text, end) => {
    writeFileSync(join(directory, "log"), refused + missingLog);
    await showsWhileRunning(`cat log >&2\nprintf '${text}${end}' >&2`, text);
  });

  it("is shown at once in the same write as the log", async () => {
    writeFileSync(join(directory, "log"), `${refused}Enter password: `);
    await showsWhileRunning("cat log >&2", "Enter password: ");
  });

  it("is shown with the log after all where kubectl succeeds", async () => {
    expect(await kubectlWriting(`${refused}open https://login\nerror: odd\n`, 0).run(get)).toBe("");
    expect(shown).toBe(`open https://login\n${refused}error: odd\n`);
  });
});

it("an output that is too long is an error that has the limit", async () => {
  const endless = kubectl("exec yes", 1024 * 1024);
  await expect(endless.run(get)).rejects.toMatchObject({
    code: "exhausted",
    message: "kubectl get pods: its output exceeds 1 MiB",
  });
});
