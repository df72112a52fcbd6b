import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eventually, until } from "@nodekeeper/testing/until";
import { afterAll, beforeAll, expect, it } from "vitest";
import { statusReader } from "../support/agent.ts";
import {
  blocksOf,
  copyInto,
  type DocShell,
  pagesFor,
  prepareShell,
  root,
  runBlock,
  runCommands,
  writeFilesOf,
} from "../support/doc-blocks.ts";
import { type ScriptProcess, startScript } from "../support/processes.ts";
import { sized } from "../support/sizes.ts";

// Commands that end by themselves run as they are; the others until they have printed something, or the agent listens.
const nodekeeper = `
main=("${process.execPath}" "${join(root, "packages/agent/src/main.ts")}")
case " $* " in
  " run "*)
    printed='status server is listening'
    own=$(mktemp -d)
    export NODEKEEPER_SERVER_ADDRESS=127.0.0.1:0 NODEKEEPER_LIFECYCLE=false NODE_NAME=docs-node
    export NODEKEEPER_STATE_DIR="$own/state" NODEKEEPER_PLUGIN_DIRECTORIES="$own/plugins" NODEKEEPER_API_SOCKET="$own/api"
    ;;
  *" --follow "*|*" -f "*|*" --watch "*|*" -w "*) printed='.' ;;
  *) exec "\${main[@]}" "$@" ;;
esac
output=$(mktemp)
"\${main[@]}" "$@" > "$output" 2>&1 &
until grep -q "$printed" "$output"; do kill -0 $! || break; sleep 0.1; done
kill -TERM $!
wait $! && status=0 || status=$?
cat "$output"
exit "$status"`;

interface Round {
  victims: { namespace: string; name: string }[];
}

let directory: string;
let dev: ScriptProcess;
let shell: DocShell;

// One development cluster for all pages: an agent whose plugins have evicted a pod.
beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "nk-docs-"));
  const data = join(directory, "dev");
  const args = ["dev", "--data-dir", data, "--first-pressure", "1s"];
  dev = startScript("packages/agent/src/main.ts", args, { TMPDIR: directory });
  const printed = (pattern: RegExp) =>
    until(`${pattern}`, () => pattern.exec(dev.output())?.[1], { explain: dev.output });
  const server = await printed(/agent +http:\/\/(\S+)/);
  const agent = statusReader(server);
  const [evicted] = await until("a pod was evicted", async () => {
    const rounds = await agent.api("eviction/rounds?since=0").catch(() => []);
    return rounds.find(({ victims }: Round) => victims.length > 0)?.victims;
  });
  const kubeconfig = await printed(/kubeconfig +(\S+)/);
  const home = join(directory, "home");
  mkdirSync(join(home, ".kube"), { recursive: true });
  copyFileSync(kubeconfig, join(home, ".kube/config"));
  shell = {
    directory,
    env: {
      HOME: home,
      TMPDIR: directory,
      KUBECONFIG: kubeconfig,
      NODE_NAME: "dev-node",
      NODE_COMPILE_CACHE: join(directory, "cache"),
      NODEKEEPER_SERVER_ADDRESS: server,
      NODEKEEPER_API_SOCKET: join(data, "nodekeeper.sock"),
      NODEKEEPER_STATE_DIR: join(directory, "state"),
      NODEKEEPER_PLUGIN_DIRECTORIES: join(directory, "plugins"),
      CONTAINER_RUNTIME_ENDPOINT: `unix://${join(data, "runtime.sock")}`,
    },
    replacements: [],
    programs: { nodekeeper },
  };
  prepareShell(shell);
  const print = async (command: string) => (await runCommands(command, directory, shell)).output;
  const why = `nodekeeper explain pod ${evicted.namespace}/${evicted.name}`;
  const verdict = await until(
    "its end is recorded",
    async () => /^Evicted at .*/m.exec(await print(why))?.[0],
  );
  const [first = ""] = (await print("nodekeeper events -o json")).split("\n");
  writeFileSync(join(directory, "config.yaml"), await print("nodekeeper config default"));
  shell.replacements = [
    [/default\/(web\b|search-ac326|crawler-6c6b4)|shop\/cart-7d9c/g, `${evicted.namespace}/${evicted.name}`],
    [/sample-memory \d+/g, /sample-memory \d+/.exec(verdict)![0]],
    [/4f0c2a9b11de-1842/g, JSON.parse(first).cursor],
    [/worker-1/g, "dev-node"],
    [/127\.0\.0\.1:10290/g, server],
    [/\/etc\/nodekeeper\/config.yaml/g, join(directory, "config.yaml")],
    [/\/mnt\/lost-node\/var\/lib\/nodekeeper\/state/g, join(data, "state")],
  ];
});

afterAll(async () => {
  dev.kill("SIGTERM");
  await dev.ended;
  rmSync(directory, { recursive: true, force: true });
});

const pages = pagesFor("dev");

it.each(sized(pages.slice(0, 1), pages))("%s: its commands do what it shows", async (page) => {
  const cwd = join(directory, "pages", page);
  mkdirSync(cwd, { recursive: true });
  writeFilesOf(page, cwd);
  copyInto(cwd, "deploy/policies/kubelet-signals.yaml");
  for (const block of blocksOf(page, ({ kind }) => kind === "dev")) {
    const check = async () => expect(await runBlock(block, cwd, shell), `${page}:${block.line}`).toEqual([]);
    // What the commands of `console` show depends on the moment: the sample's pressure comes and goes.
    await (block.language === "console" ? eventually(check) : check());
  }
});
