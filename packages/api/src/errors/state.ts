import { declareError, declareProblem } from "./declare.ts";

// NK11xx: the state directory and its database.

export const StateDirectoryUnusable = declareError({
  id: "NK1101",
  code: "invalid",
  message: "state directory {directory} can't be created or used",
  title: "The state directory can't be created or used",
  cause:
    "`stateDir` can't be a directory: a component of the path is a file, a loop of symbolic links, or too long.",
  remedy:
    "Set `stateDir` to an absolute path below a directory of the node, mounted writable into the agent's container.",
});

export const StateDirectoryInUse = declareError({
  id: "NK1102",
  code: "conflict",
  message: "state directory {directory} is in use by {holder}",
  title: "The state directory is in use by another agent",
  cause:
    "A second agent was started with the same `stateDir`: during a rollout the old pod has not exited yet, or the node runs two agents. The message names the process.",
  remedy:
    "Wait for the old agent to exit; the kubelet restarts the new one. If no other agent should run, end the process that the message names. The lock ends with its process; there is no file to delete.",
});

export const StateDamaged = declareError({
  id: "NK1103",
  code: "corrupt",
  message: "{place}: {problem}",
  title: "The state database is damaged",
  cause:
    "The file could not be read, for example after a disk error: the agent renamed it to the name in the log and created a new one. Or single records can't be decoded: the log line names them, and the file stays in use.",
  remedy:
    "The agent needs no action: it reads from the API server what it has published. If the renamed file can be read, it has the explanations of earlier evictions (`nodekeeper rounds --from`). Check the disk.",
});

export const StateOfNewerVersion = declareError({
  id: "NK1104",
  code: "unsupported",
  message: "{file} was written by a newer nodekeeper",
  title: "The state database was written by a newer version",
  cause: "The agent was downgraded, or a command of an older version reads a newer agent's directory.",
  remedy:
    "The agent renamed the file and created a new one. After an upgrade, the old file can be restored while no agent runs. For a command, use the version of the agent that wrote the file.",
});

export const StateNotWritable = declareProblem({
  id: "NK1105",
  title: "The state database can't be written",
  cause:
    "The disk is full, read-only or broken, or the directory belongs to another user. The agent continues with the state in its memory.",
  remedy:
    "Free space or correct the mount and owner of `stateDir`, then restart the agent if `/readyz` still names it. Until then, records and timers are lost if the agent exits.",
});

export const StateRemoved = declareProblem({
  id: "NK1106",
  title: "The state database was removed under the running agent",
  cause: "The file was deleted or replaced, for example by a cleanup job or a restore.",
  remedy:
    "Restart the agent. Exclude `stateDir` from cleanup jobs, and restore backups only while no agent runs.",
});

export const RecordedStateUnreadable = declareError({
  id: "NK1107",
  code: "unavailable",
  title: "Recorded state can't be read",
  cause:
    "`--from` names a directory without a state database, a file that is not one, or a database that is written continuously.",
  remedy: "Name the agent's `stateDir`, or ask the running agent with `--server` instead.",
});

export const StatePartlyDamaged = declareProblem({
  id: "NK1108",
  title: "Parts of the state database are damaged",
  cause:
    "Rows, tables or pages can't be read, as after a disk error or a change by another program. They are skipped, and the rest is kept: `damage` in the log line lists each table, its content, and what is lost. A file with damaged pages is renamed to `setAside`; the new file has what could be read.",
  remedy:
    "The agent needs no action. Possibly missing records appear as a gap in the output of `explain`, `rounds` and `timeline`; consumers of the event log get a snapshot if events are lost. Check the disk.",
});

export const StoredReportsOutdated = declareProblem({
  id: "NK1109",
  title: "Stored reports may be outdated",
  cause:
    "Reports could not be written before the agent ended, or the state directory is an older copy, for example after a restore. Published content may be newer.",
  remedy:
    "No action is needed: published content stays until the plugins report again, at most for the grace period. If the disk was full or read-only, see NK1105.",
});
