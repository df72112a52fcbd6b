import type { CatalogueEntries } from "./entry.ts";

/** NK11xx: the state directory and its database. */
export const stateErrors: CatalogueEntries = {
  NK1101: {
    title: "The state directory can't be made or used",
    cause:
      "`stateDir` is no path that can be a directory: a part of it is a file, a loop of links, or too long.",
    remedy:
      "Set `stateDir` to an absolute path below a directory of the node, mounted writable into the agent's container.",
  },
  NK1102: {
    title: "The state directory is in use by another agent",
    cause:
      "A second agent was started with the same `stateDir`: during a rollout the old pod has not exited yet, or the node runs two agents. The message names the process.",
    remedy:
      "Wait for the old agent to exit; kubelet starts the new one again. If none should run, end the process that the message names. The lock is released with its process, there is no file to delete.",
  },
  NK1103: {
    title: "The state database is damaged",
    cause:
      "SQLite found the file damaged, as after a disk error: the agent renamed it to the name in the log and started a new one. Or single rows can't be decoded: the log line names them, and the file stays.",
    remedy:
      "Nothing has to be done for the agent to work: it reads back what it published from the API server. Explanations of earlier evictions are in the renamed file (`nodekeeper rounds --from`) as far as it can be read. Check the disk.",
  },
  NK1104: {
    title: "The state database was written by a newer version",
    cause: "The agent was downgraded, or a command of an older version reads a newer agent's directory.",
    remedy:
      "The agent set the file aside and started a new one; after an upgrade the old file can be put back while no agent runs. For a command, use the version of the agent that wrote the file.",
  },
  NK1105: {
    title: "The state database can't be written",
    cause:
      "The disk is full, read-only or broken, or the directory belongs to another user. The agent runs on what it keeps in memory.",
    remedy:
      "Free space or correct the mount and owner of `stateDir`, then restart the agent if `/readyz` still names it. Until then records and timers are lost when the agent exits.",
  },
  NK1106: {
    title: "The state database was removed under the running agent",
    cause: "The file was deleted or replaced, for example by a cleanup job or a restore.",
    remedy:
      "Restart the agent. Exclude `stateDir` from cleanup jobs, and restore backups only while no agent runs.",
  },
  NK1107: {
    title: "Recorded state can't be read",
    cause:
      "`--from` names a directory without a state database, a file that is none, or a database that is being written all the time.",
    remedy: "Name the agent's `stateDir`, or ask the running agent with `--server` instead.",
  },
};
