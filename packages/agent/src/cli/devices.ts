import type { ApiAnswers } from "@nodekeeper/api/openapi";
import { plainText } from "@nodekeeper/api/text";
import { age, counted, droppedText, kubeletTexts } from "@nodekeeper/api/wording";
import { NodekeeperError } from "@nodekeeper/core/lib";
import type { AgentConnection } from "./agent-connection.ts";
import { problemTable } from "./driver-problems.ts";
import { type Colour, type Output, printAs, type TableFormat, table } from "./output.ts";

export interface DevicesOptions {
  format: TableFormat;
  /** If set, print only this driver, with its slices and problems. */
  driver: string | undefined;
}

// A problem contains a slice, a field and the API server's message.
const MAX_LINE_LENGTH = 1_000;

const colours: Record<string, Colour> = {
  streaming: "green",
  failing: "red",
  unresponsive: "red",
  waiting: "yellow",
  disconnected: "yellow",
};

type DriverStatus = ApiAnswers["devices"][number];
type DriverClaims = ApiAnswers["claims"][number];

/** `nodekeeper devices [driver]` */
export async function devicesCommand(
  agent: AgentConnection,
  options: DevicesOptions,
  output: Output,
  now: number,
): Promise<void> {
  const drivers = await agent.get("devices");
  const claims = await agent.get("claims");
  const { driver: wanted, format } = options;
  const found = wanted === undefined ? undefined : drivers.find(({ name }) => name === wanted);
  if (wanted !== undefined && !found) {
    const known = drivers.map(({ name }) => name).join(", ") || "none";
    throw new NodekeeperError("notFound", `no driver ${wanted}; registered drivers: ${known}`);
  }
  const withClaims = (driver: DriverStatus): DriverRow => ({
    ...driver,
    claims: claims.find((each) => each.driver === driver.name),
  });
  printAs(output, format, found ? withClaims(found) : drivers.map(withClaims), () => {
    if (found) return page(withClaims(found), output, now);
    if (drivers.length === 0) return "No device driver has registered.\n";
    return list(drivers.map(withClaims), format === "wide", output, now);
  });
}

/** `claims` is undefined if the agent does not prepare the driver's devices. */
interface DriverRow extends DriverStatus {
  claims: DriverClaims | undefined;
}

function list(drivers: readonly DriverRow[], wide: boolean, output: Output, now: number): string {
  const headings = [
    "DRIVER",
    "STREAM",
    "SINCE",
    "REPORTED",
    "PUBLISHED",
    "QUARANTINED",
    "SLICES",
    "CLAIMS",
    ...(wide ? ["PROTOCOL", "POOLS"] : []),
    "MESSAGE",
  ];
  const rows = drivers.map((driver) => [
    driver.name,
    stateOf(driver),
    age(now - driver.since),
    String(driver.reported),
    String(driver.devices),
    String(driver.quarantined),
    String(driver.slices.length),
    driver.claims ? String(driver.claims.claims.length) : "-",
    ...(wide ? [driver.protocol, driver.pools.map(({ name }) => name).join(",") || "-"] : []),
    messageOf(driver) || "-",
  ]);
  return table(output, headings, rows, (at, column) => (column === 1 ? colours[rows[at]![1]!] : undefined));
}

function page(driver: DriverRow, output: Output, now: number): string {
  const line = (what: string, text: string) =>
    `${`${what}:`.padEnd(12)}${plainText(text, MAX_LINE_LENGTH)}\n`;
  const messageAt = driver.messageAt ? `${age(now - driver.messageAt)} ago` : "none yet";
  const problems = driver.problems.map(({ pool, device, field, message }) => [
    pool || "-",
    device ?? "-",
    field || "-",
    message,
  ]);
  return [
    line("Driver", driver.name),
    line(
      "Stream",
      `${stateOf(driver)} for ${age(now - driver.since)}${driver.error ? `: ${driver.error}` : ""}`,
    ),
    line("Protocol", driver.protocol),
    line("Message", `last ${messageAt}`),
    line(
      "Devices",
      `${driver.reported} reported, ${driver.devices} published, ${driver.quarantined} quarantined`,
    ),
    ...(driver.clusterPools ? clusterLines(driver.clusterPools).map((text) => line("Cluster", text)) : []),
    ...(driver.claims ? kubeletLines(driver.claims).map((text) => line("Kubelet", text)) : []),
    ...(driver.claims?.unhealthy ?? []).map(({ pool, device, message }) =>
      line("Unhealthy", `${pool}/${device}${message ? `: ${message}` : ""}`),
    ),
    ...(driver.writeError ? [line("Problem", driver.writeError)] : []),
    ...Object.entries(driver.refused).map(([name, why]) => line("Refused", `${name}: ${why}`)),
    ...driver.foreign.map((name) => line("Foreign", `${name}: a slice of another client in the same pool`)),
    ...driver.dropped.map((field) => line("Dropped", droppedText(field))),
    "\n",
    table(
      output,
      ["SLICE", "POOL", "GENERATION", "DEVICES"],
      [...driver.slices, ...(driver.clusterPools?.slices ?? [])].map((slice) => [
        slice.name,
        slice.pool || "-",
        String(slice.generation),
        String(slice.devices),
      ]),
    ),
    ...(driver.claims?.claims.length ? ["\n", claimTable(driver.claims, output, now)] : []),
    ...(driver.claimProblems ? ["\n", problemTable(driver.claimProblems, output, now)] : []),
    ...(problems.length > 0
      ? ["\n", table(output, ["POOL", "DEVICE", "FIELD", "QUARANTINED BECAUSE"], problems)]
      : []),
  ].join("");
}

function clusterLines({
  lease,
  holder,
  isHolder,
  pools,
  devices,
  writeError,
  refused,
}: NonNullable<DriverStatus["clusterPools"]>): string[] {
  const reported = pools.reduce((sum, pool) => sum + pool.devices, 0);
  const byThis = `${counted(pools.length, "pool")} beyond the node, published by this agent: ${reported} devices reported, ${devices} published`;
  const byOther = `pools beyond the node are published by ${holder === undefined ? "no agent that is known" : `the agent on ${holder.split("_")[0]}`}`;
  return [
    `${isHolder ? byThis : byOther} (Lease ${lease})`,
    ...(writeError ? [`problem: ${writeError}`] : []),
    ...Object.entries(refused).map(([name, why]) => `refused: ${name}: ${why}`),
  ];
}

function kubeletLines({ kubelet, reason, problem, claims }: DriverClaims): string[] {
  return [
    `${kubeletTexts[kubelet]}${reason ? `: ${reason}` : ""}`,
    ...(kubelet === "ownPlugin" && claims.length > 0
      ? ["claims that the agent prepared before keep their CDI files until they end"]
      : []),
    ...(problem ? [problem] : []),
  ];
}

function claimTable({ claims }: DriverClaims, output: Output, now: number): string {
  const rows = claims.map(({ namespace, name, state, updatedAt, devices }) => [
    `${namespace}/${name}`,
    state,
    age(now - updatedAt),
    devices.join(", ") || "-",
  ]);
  return table(output, ["CLAIM", "STATE", "SINCE", "DEVICES"], rows);
}

function stateOf({ state, isRegistered }: DriverStatus): string {
  return isRegistered ? state : "disconnected";
}

function messageOf({ writeError, error, refused, problems, foreign, dropped, claims }: DriverRow): string {
  if (claims?.kubelet === "refused") return `kubelet refused the plugin: ${claims.reason}`;
  if (claims?.problem) return claims.problem;
  const [first] = Object.entries(refused);
  const [problem] = problems;
  if (writeError) return writeError;
  if (error) return error;
  if (first) return `API server rejected slice ${first[0]}: ${first[1]}`;
  if (foreign.length > 0) return `another client published slice ${foreign[0]} in the same pool`;
  if (problem) return `${problem.device ?? problem.pool}: ${problem.field}: ${problem.message}`;
  const [field] = dropped;
  return field ? `the API server does not store ${droppedText(field)}` : "";
}
