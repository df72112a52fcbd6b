import { problemPlace } from "@nodekeeper/api/wording";
import { addressOf } from "../../address.ts";
import type { Live } from "../../live.ts";
import { type Fact, Facts } from "../../parts/facts.tsx";
import { SignalDays } from "../../parts/signal-days.tsx";
import { Table } from "../../parts/table.tsx";
import { Age, Duration, Time } from "../../parts/time.tsx";
import { quantity, shown } from "../../text.ts";
import { durationText, failureText, rateText } from "./calls.ts";
import { Exchange } from "./exchange.tsx";
import { addressName, type Plugin, type PluginRow } from "./groups.ts";
import { HealthMark } from "./health-mark.tsx";
import { Trouble } from "./trouble.tsx";
import { stateText, typeText } from "./words.ts";

const MOST_PROBLEMS = 100;

interface DetailsProps {
  /** Name in the address. */
  name: string;
  plugins: readonly Plugin[];
  live: Live;
}

/** Details of all plugins of one name; several if it registered as several types. */
export function PluginDetails({ name, plugins, live }: DetailsProps) {
  const found = plugins.filter(({ row }) => addressName(row) === name);
  return (
    <>
      <p>
        <a href={addressOf("plugins")}>All plugins</a>
      </p>
      {found.length === 0 && (
        <p>
          There is no plugin {shown(name)} now: it has not registered, or its socket was removed. When it
          registers it appears here.
        </p>
      )}
      {found.map((plugin) => (
        <Details key={plugin.key} plugin={plugin} live={live} />
      ))}
    </>
  );
}

function Details({ plugin, live }: { plugin: Plugin; live: Live }) {
  const { row, others, health } = plugin;
  return (
    <article class="card">
      <h2>
        {shown(addressName(row))} <small>{typeText(shown(row.type, 60))}</small>{" "}
        <HealthMark health={health} />
      </h2>
      <Trouble plugin={plugin} most={MOST_PROBLEMS} />
      <Facts facts={facts(row)} exportedAs={`${shown(addressName(row))}: ${typeText(row.type)}`} />
      {row.type === "DRAPlugin" && <DriverLine name={row.name} live={live} />}
      {row.driverProblems && <DriverProblems problems={row.driverProblems} />}
      {row.type === "EvictionPlugin" && row.name !== "" && live.node?.eviction && (
        <>
          <h3>Last 24 hours</h3>
          <SignalDays plugin={row.name} none="No value of the last 24 hours is recorded." />
        </>
      )}
      {row.name !== "" && row.type !== "" && <Exchange type={row.type} name={row.name} version={row} />}
      {others.length > 0 && <OtherSockets rows={others} />}
    </article>
  );
}

function facts(row: PluginRow): Fact[] {
  const when = (ms: number | undefined) =>
    ms !== undefined && (
      <>
        <Time at={ms} /> (<Age since={ms} />)
      </>
    );
  const rate = [rateText(row), failureText(row)].filter(Boolean).join(", ");
  const found: Fact[] = [
    ["State", stateText(row)],
    ["Since", when(row.since)],
    ["Last contact", when(row.contactAt) || "none yet"],
    [row.type === "ReporterPlugin" ? "Messages" : "Calls", rate],
    ["Mean duration", row.calls?.meanMs !== undefined && durationText(row.calls.meanMs)],
    ["Content", row.contentBytes > 0 && quantity(row.contentBytes, "bytes")],
    ["Content changed", when(row.contentAt)],
    ["Versions", row.versions.map((version) => shown(version, 60)).join(", ")],
    ["Registration socket", row.registrationSocket && shown(row.registrationSocket)],
    ["Endpoint", row.endpoint && shown(row.endpoint)],
    ["Attempts to register", row.attempts > 1 && String(row.attempts)],
  ];
  return found.filter(([, text]) => text);
}

function DriverLine({ name, live: { devices } }: { name: string; live: Live }) {
  const driver = devices?.find((each) => each.name === name);
  if (!driver) return null;
  return (
    <p>
      {driver.reported} devices reported, {driver.devices} published, {driver.quarantined} quarantined, in{" "}
      {driver.slices.length} ResourceSlices.{" "}
      <a href={addressOf("resources", ["devices"], { driver: name })}>Its devices and claims</a>
    </p>
  );
}

function DriverProblems({ problems }: { problems: NonNullable<PluginRow["driverProblems"]> }) {
  const more = problems.length - MOST_PROBLEMS;
  return (
    <>
      <h3>Not published or accepted as the driver reported it: {problems.length}</h3>
      <Table
        label="Problems of the driver"
        columns={["ID", "Since", "Where", "Message"]}
        rows={problems.slice(0, MOST_PROBLEMS).map((problem, place) => ({
          key: String(place),
          cells: [
            problem.errorId,
            <Age since={problem.since} />,
            shown(problemPlace(problem)) || "–",
            shown(problem.message, 1_000),
          ],
        }))}
      />
      {more > 0 && <p>and {more} more</p>}
    </>
  );
}

function OtherSockets({ rows }: { rows: readonly PluginRow[] }) {
  return (
    <>
      <h3>Other sockets with this name</h3>
      <Table
        label="Other sockets with this name"
        columns={["Socket", "State", "Why"]}
        rows={rows.map((row) => ({
          key: row.registrationSocket ?? "",
          cells: [
            shown(row.registrationSocket ?? "none"),
            <>
              {stateText(row)}{" "}
              {row.since !== undefined && (
                <small>
                  for <Duration since={row.since} />
                </small>
              )}
            </>,
            <>
              {row.errorId && <b>{row.errorId}: </b>}
              {shown(row.error ?? "", 1_000) || "–"}
            </>,
          ],
        }))}
      />
    </>
  );
}
