import { addressOf } from "../../address.ts";
import { age, at, shown } from "../../text.ts";
import { durationText, failureText, rateText } from "./calls.ts";
import { addressName, type Plugin } from "./groups.ts";
import { HealthMark } from "./health-mark.tsx";
import { Trouble } from "./trouble.tsx";
import { useHeldOrder } from "./use-held-order.ts";
import { stateText, summaryText, typeText } from "./words.ts";

const headings = ["Plugin", "State", "Last contact", "Calls", "Mean duration"];
/** How many of them a narrow screen has: name and state are enough to find a plugin, the rest is in its details. */
const ALWAYS_SHOWN = 2;
const MOST_PROBLEMS = 3;

/** All plugins, failing first; what is wrong with one is a row below it. */
export function PluginList({ plugins }: { plugins: readonly Plugin[] }) {
  const byKey = new Map(plugins.map((plugin) => [plugin.key, plugin]));
  const { order, reading } = useHeldOrder([...byKey.keys()]);
  return (
    <>
      <p role="status">{summaryText(plugins)}</p>
      <table class="plugins" {...reading}>
        <caption class="unseen">Plugins and drivers, failing ones first</caption>
        <thead>
          <tr>
            {headings.map((heading, at) => (
              <th key={heading} scope="col" class={at < ALWAYS_SHOWN ? "" : "more"}>
                {heading}
              </th>
            ))}
          </tr>
        </thead>
        {order.map((key) => (
          <PluginRows key={key} plugin={byKey.get(key)!} />
        ))}
      </table>
    </>
  );
}

function PluginRows({ plugin }: { plugin: Plugin }) {
  const { row, health } = plugin;
  const now = Date.now();
  const isTroubled = health === "failing" || health === "impaired";
  return (
    <tbody class={health}>
      <tr>
        <th scope="row">
          <a href={addressOf("plugins", [addressName(row)])}>{shown(addressName(row)) || "unnamed"}</a>
          <small>{typeText(shown(row.type, 60))}</small>
        </th>
        <td>
          <HealthMark health={health} />
          <small title={row.since === undefined ? undefined : at(row.since)}>
            {stateText(row)}
            {row.since !== undefined && ` for ${age(now - row.since)}`}
          </small>
        </td>
        <td class="more">{row.contactAt === undefined ? "none yet" : `${age(now - row.contactAt)} ago`}</td>
        <td class="more">
          {rateText(row) ?? "–"}
          {failureText(row) && <small>{failureText(row)}</small>}
        </td>
        <td class="more">{row.calls?.meanMs === undefined ? "–" : durationText(row.calls.meanMs)}</td>
      </tr>
      {isTroubled && (
        <tr>
          <td colSpan={headings.length}>
            <Trouble plugin={plugin} most={MOST_PROBLEMS} />
          </td>
        </tr>
      )}
    </tbody>
  );
}
