import { describe, expect, it, vi } from "vitest";
import {
  agentEnvironment,
  agentOptions,
  isKubectlPlugin,
  type LaunchedProcess,
  startOver,
} from "./launch.ts";

function launched(changes: Partial<LaunchedProcess> = {}) {
  const execve = vi.fn<NonNullable<LaunchedProcess["execve"]>>();
  const given: LaunchedProcess = {
    platform: "linux",
    execPath: process.execPath,
    execArgv: ["--enable-source-maps"],
    argv: ["node", "/opt/nodekeeper.js", "run", "--node-name=worker-1"],
    env: { PATH: "/bin", EMPTY: "", ABSENT: undefined },
    execve,
    ...changes,
  };
  return { given, execve };
}

describe("an agent's process", () => {
  it("starts over as the same program with the settings of glibc and V8 added", () => {
    const { given, execve } = launched();
    startOver(given, false);
    expect(execve.mock.calls).toEqual([
      [
        process.execPath,
        [
          process.execPath,
          "--enable-source-maps",
          ...agentOptions,
          "/opt/nodekeeper.js",
          "run",
          "--node-name=worker-1",
        ],
        { PATH: "/bin", EMPTY: "", ...agentEnvironment, NODEKEEPER_STARTED_OVER: "1" },
      ],
    ]);
  });

  it("starts over as a single executable, which has no script and no options among its arguments", () => {
    const { given, execve } = launched({
      execArgv: [...agentOptions],
      argv: ["/bin/nodekeeper", "nodekeeper", "run", "--x"],
    });
    startOver(given, true);
    expect(execve.mock.calls[0]![1]).toEqual([process.execPath, "run", "--x"]);
  });

  it("continues where they are set already: it starts over once, and an operator's values stay", () => {
    const env = Object.fromEntries(Object.keys(agentEnvironment).map((name) => [name, "42"]));
    const { given, execve } = launched({ env, execArgv: [...agentOptions] });
    startOver(given, false);
    expect(execve).not.toHaveBeenCalled();
  });

  it("continues where only V8's options are missing, which save CPU time only: a profile may forbid to execute", () => {
    const { given, execve } = launched({ env: { ...agentEnvironment } });
    startOver(given, false);
    expect(execve).not.toHaveBeenCalled();
  });

  it("continues where glibc removed the settings, as it does for a program with capabilities of its own", () => {
    const { given, execve } = launched({ env: { NODEKEEPER_STARTED_OVER: "1" } });
    startOver(given, false);
    expect(execve).not.toHaveBeenCalled();
  });

  it.each<[string, Partial<LaunchedProcess>]>([
    ["on another system than Linux", { platform: "darwin" }],
    ["where Node can't replace a process", { execve: undefined }],
    ["where Node's executable was removed", { execPath: "/nonexistent/node" }],
  ])("continues %s", (_, changes) => {
    const { given, execve } = launched(changes);
    startOver(given, false);
    expect(execve).not.toHaveBeenCalled();
  });
});

describe("the program", () => {
  it.each([
    ["/usr/local/bin/kubectl-nodekeeper", true, true],
    ["kubectl-nodekeeper", true, true],
    ["/usr/local/bin/nodekeeper", true, false],
    ["/opt/kubectl-nodekeeper/nodekeeper-linux-x64", true, false],
    ["kubectl-nodekeeper-2", true, false],
    ["kubectl-nodekeeper", false, false],
  ])("called as %s, single executable: %s, is the kubectl plugin: %s", (argv0, isSingle, expected) => {
    expect(isKubectlPlugin(argv0, isSingle)).toBe(expected);
  });
});
