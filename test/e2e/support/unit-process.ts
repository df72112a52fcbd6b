import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Child } from "./child.ts";

/** A unit's `[Service]`: the values of each key, in the order of the file. */
export type Service = ReadonlyMap<string, readonly string[]>;

/** Reads a unit file as systemd.syntax(7) has it, without quotes and line continuations, which ours has none of. */
export function readService(file: string): Service {
  const text = readFileSync(file, "utf8");
  const [, section = ""] = /^\[Service\]\n([\s\S]*?)(?:^\[|$(?![\s\S]))/m.exec(text) ?? [];
  const pairs = [...section.matchAll(/^([A-Za-z]+)=(.*)$/gm)].map(([, key = "", value = ""]) => ({
    key,
    value,
  }));
  return new Map(
    [...Map.groupBy(pairs, ({ key }) => key)].map(([key, all]) => [key, all.map(({ value }) => value)]),
  );
}

export interface UnitOptions {
  /** An empty directory, which becomes the machine's /var/lib and /run, and holds the log. */
  directory: string;
  /** What lies at the unit's ExecStart. */
  program: string;
  /** Lines of the unit's EnvironmentFile. */
  environment: Readonly<Record<string, string>>;
}

/**
 * Starts a unit's command as systemd would, as far as possible without systemd as PID 1: with the unit's environment,
 * without capabilities or a way to gain them, with only the unit's directories writable, and with a separate /tmp, /run
 * and /var/lib, which are empty at the first start. Filters of system calls and address families are not applied.
 */
export function startUnit(unit: Service, { directory, program, environment }: UnitOptions): Child {
  const value = (key: string) => {
    const [first] = unit.get(key) ?? [];
    if (first === undefined) throw new Error(`the unit has no ${key}`);
    return first;
  };
  const [command = "", ...words] = value("ExecStart").split(" ");
  const own = (unit.get("Environment") ?? []).flatMap((line) => line.split(" "));
  const env = { ...Object.fromEntries(own.map((each) => each.split("=", 2))), ...environment };
  const args = words.flatMap((word) =>
    word.startsWith("$") ? (env[word.slice(1)] ?? "").split(" ") : [word],
  );
  for (const name of ["lib", "run", "bin"]) mkdirSync(join(directory, name), { recursive: true });
  const directories = [
    ...value("StateDirectory")
      .split(" ")
      .map((name) => `/var/lib/${name}`),
    ...value("RuntimeDirectory")
      .split(" ")
      .map((name) => `/run/${name}`),
  ];
  const writable = (unit.get("ReadWritePaths") ?? []).flatMap((line) => line.split(" ")).map(optional);
  const script = [
    // In place of the machine's own, so that it may have an agent of its own.
    `mount --bind '${directory}/lib' /var/lib`,
    `mount --bind '${directory}/run' /run`,
    `touch '${directory}/bin/nodekeeper' && mount --bind '${directory}/bin' ${join(command, "..")}`,
    `mount --bind '${program}' ${command}`,
    `mkdir -p -m 755 ${directories.join(" ")}`,
    `umask ${value("UMask")}`,
    ...(unit.get("ExecStartPre") ?? []).map(unprotected),
    `for path in ${[...directories, ...writable].join(" ")}; do if [ -e $path ]; then mount --bind $path $path; fi; done`,
    "for path in / /run /var/lib; do mount -o remount,bind,ro $path; done",
    "mount -t tmpfs tmpfs /tmp",
    `exec setpriv --no-new-privs --bounding-set=-all --inh-caps=-all ${command} "$@"`,
  ];
  return new Child({
    name: "unit",
    command: "/usr/bin/unshare",
    args: [
      "--mount",
      "--propagation",
      "private",
      "/bin/sh",
      "-euc",
      script.join("\n"),
      "unit",
      ...args.filter(Boolean),
    ],
    env,
    logFile: join(directory, "log"),
  });
}

// Commands before the start run before anything is protected: all of ours have "+", and may fail.
function unprotected(command: string): string {
  if (!command.startsWith("-+")) throw new Error(`ExecStartPre=${command} does not begin with -+`);
  return `${command.slice(2)} || true`;
}

function optional(path: string): string {
  if (!path.startsWith("-")) throw new Error(`ReadWritePaths=${path} does not begin with -`);
  return path.slice(1);
}
