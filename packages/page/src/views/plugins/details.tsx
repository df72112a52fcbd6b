import { addressOf } from "../../address.ts";
import type { Live } from "../../live.ts";
import { age, at, quantity, shown } from "../../text.ts";
import { durationText, failureText, rateText } from "./calls.ts";
import { Exchange } from "./exchange.tsx";
import { addressName, type Plugin, type PluginRow } from "./groups.ts";
import { HealthMark } from "./health-mark.tsx";
import { Trouble } from "./trouble.tsx";
import { stateText, typeText } from "./words.ts";

const MOST_PROBLEMS = 100;

interface DetailsProps {
  /** As in the address. */
  name: string;
  plugins: readonly Plugin[];
  live: Live;
}

/** Everything about the plugins of one name; several where it has several types. */
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
    <article class="plugin">
      <h2>
        {shown(addressName(row))} <small>{typeText(shown(row.type, 60))}</small>{" "}
        <HealthMark health={health} />
      </h2>
      <Trouble plugin={plugin} most={MOST_PROBLEMS} />
      <dl class="facts">
        {facts(row).map(([what, text]) => (
          <div key={what}>
            <dt>{what}</dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
      {row.type === "DRAPlugin" && <DriverLine name={row.name} live={live} />}
      {row.name !== "" && row.type !== "" && <Exchange type={row.type} name={row.name} version={row} />}
      {others.length > 0 && <OtherSockets rows={others} />}
    </article>
  );
}

function facts(row: PluginRow): [what: string, text: string][] {
  const now = Date.now();
  const when = (ms: number) => `${at(ms)} (${age(now - ms)} ago)`;
  const rate = [rateText(row), failureText(row)].filter(Boolean).join(", ");
  const found: [string, string | undefined][] = [
    ["State", stateText(row)],
    ["Since", row.since === undefined ? undefined : when(row.since)],
    ["Last contact", row.contactAt === undefined ? "none yet" : when(row.contactAt)],
    [row.type === "ReporterPlugin" ? "Messages" : "Calls", rate],
    ["Mean duration", row.calls?.meanMs === undefined ? undefined : durationText(row.calls.meanMs)],
    ["Content", row.contentBytes > 0 ? quantity(row.contentBytes, "bytes") : undefined],
    ["Content changed", row.contentAt === undefined ? undefined : when(row.contentAt)],
    ["Versions", row.versions.map((version) => shown(version, 60)).join(", ")],
    ["Registration socket", row.registrationSocket && shown(row.registrationSocket)],
    ["Endpoint", row.endpoint && shown(row.endpoint)],
    ["Attempts to register", row.attempts > 1 ? String(row.attempts) : undefined],
  ];
  return found.flatMap(([what, text]) => (text ? [[what, text] as [string, string]] : []));
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

function OtherSockets({ rows }: { rows: readonly PluginRow[] }) {
  const now = Date.now();
  return (
    <>
      <h3>Other sockets with this name</h3>
      <table>
        <thead>
          <tr>
            <th scope="col">Socket</th>
            <th scope="col">State</th>
            <th scope="col">Why</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.registrationSocket}>
              <th scope="row">{shown(row.registrationSocket ?? "none")}</th>
              <td>
                {stateText(row)}
                {row.since !== undefined && ` for ${age(now - row.since)}`}
              </td>
              <td>
                {row.errorId && <b>{row.errorId}: </b>}
                {shown(row.error ?? "", 1_000) || "–"}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}
