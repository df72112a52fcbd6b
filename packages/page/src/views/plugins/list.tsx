import { addressOf } from "../../address.ts";
import { Name } from "../../parts/name.tsx";
import { Table } from "../../parts/table.tsx";
import { Age, Duration } from "../../parts/time.tsx";
import { shown } from "../../text.ts";
import { durationText, failureText, rateText } from "./calls.ts";
import { addressName, type Plugin } from "./groups.ts";
import { HealthMark } from "./health-mark.tsx";
import { Trouble } from "./trouble.tsx";
import { useHeldOrder } from "./use-held-order.ts";
import { stateText, summaryText, typeText } from "./words.ts";

const columns = ["Plugin", "State", "Last contact", "Calls", "Mean time"];
const MOST_PROBLEMS = 3;

/** All plugins, failing first; problems of a plugin are below its row. */
export function PluginList({ plugins }: { plugins: readonly Plugin[] }) {
  const byKey = new Map(plugins.map((plugin) => [plugin.key, plugin]));
  const { order, reading } = useHeldOrder([...byKey.keys()]);
  const rows = order.map((key) => rowOf(byKey.get(key)!));
  return (
    <div class="card">
      <p role="status">{summaryText(plugins)}</p>
      <div {...reading}>
        <Table label="Plugins and drivers, failing ones first" columns={columns} rows={rows} />
      </div>
    </div>
  );
}

function rowOf(plugin: Plugin) {
  const { key, row, health } = plugin;
  const name = addressName(row);
  const isTroubled = health === "failing" || health === "impaired";
  return {
    key,
    class: health,
    cells: [
      <>
        <a href={addressOf("plugins", [name])}>{name === "" ? "unnamed" : <Name text={name} />}</a>{" "}
        <small>{typeText(shown(row.type, 60))}</small>
      </>,
      <>
        <HealthMark health={health} />{" "}
        <small>
          {stateText(row)}
          {row.since !== undefined && (
            <>
              {" for "}
              <Duration since={row.since} />
            </>
          )}
        </small>
      </>,
      row.contactAt === undefined ? "none yet" : <Age since={row.contactAt} />,
      <>
        {rateText(row) ?? "–"} {failureText(row) && <small class="bad">{failureText(row)}</small>}
      </>,
      row.calls?.meanMs === undefined ? "–" : durationText(row.calls.meanMs),
    ],
    more: { Error: row.error ?? null, "Error ID": row.errorId ?? null, Problems: row.problems },
    ...(isTroubled ? { below: <Trouble plugin={plugin} most={MOST_PROBLEMS} /> } : {}),
  };
}
