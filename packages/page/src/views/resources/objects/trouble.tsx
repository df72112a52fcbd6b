import type { ComponentChildren } from "preact";
import { PluginLink, PluginLinks } from "../../../parts/plugin-links.tsx";
import { Table } from "../../../parts/table.tsx";
import { shown } from "../../../text.ts";
import type { PublishedObject } from "./objects.ts";

const LONGEST = 1_000;

/** What is refused, disputed or left over in an object, each with its remedy. Empty if there are no problems. */
export function ObjectTrouble({ object }: { object: PublishedObject }) {
  const { quarantined, conflicts, contested, unclaimed, lastError } = object;
  const refused = Object.entries(quarantined);
  return (
    <>
      {lastError && (
        <p class="lost">
          The last write failed: {shown(lastError, LONGEST)}. The write is retried automatically.
        </p>
      )}
      {refused.length > 0 && (
        <Trouble
          title="Refused content"
          about="The API server rejects it. The last content of the plugin that was accepted stays published; what is reported next is tried again."
          headings={["Plugin", "Why"]}
          rows={refused.map(([plugin, why]) => [<PluginLink name={plugin} />, shown(why, LONGEST)])}
        />
      )}
      {conflicts.length > 0 && (
        <Trouble
          title="Reported differently"
          about="Several plugins report the field. The value of the one whose name sorts last is published: stop the others from reporting it."
          headings={["Field", "Published is", "Not used"]}
          rows={conflicts.map(({ path, winner, others }) => [
            shown(path, LONGEST),
            <PluginLink name={winner} />,
            <PluginLinks names={others} />,
          ])}
        />
      )}
      {contested.length > 0 && (
        <Trouble
          title="Contested by other clients"
          about="Another client writes the field again and again, and the agent restores it. Stop the client, or the plugin from reporting it."
          headings={["Field", "Written by", "Restored", "Reported by"]}
          rows={contested.map(({ path, writers, times, plugins }) => [
            shown(path, LONGEST),
            writers.map((writer) => shown(writer)).join(", ") || "a client that is not recorded",
            `${times} times`,
            <PluginLinks names={plugins} />,
          ])}
        />
      )}
      {unclaimed.length > 0 && (
        <Trouble
          title="Left by an earlier agent process"
          about="No plugin reports these fields any more. They are removed when the startup grace period ends, unless their plugin returns."
          headings={["Field"]}
          rows={unclaimed.map((path) => [shown(path, LONGEST)])}
        />
      )}
    </>
  );
}

interface TroubleProps {
  title: string;
  about: string;
  headings: readonly string[];
  rows: readonly (readonly ComponentChildren[])[];
}

const MOST_ROWS = 100;

function Trouble({ title, about, headings, rows }: TroubleProps) {
  return (
    <section class="dispute">
      <h3>
        △ {title} <small>{rows.length}</small>
      </h3>
      <p>{about}</p>
      <Table
        label={title}
        columns={headings}
        rows={rows.slice(0, MOST_ROWS).map((cells, key) => ({ key, cells }))}
      />
      {rows.length > MOST_ROWS && <p>and {rows.length - MOST_ROWS} more</p>}
    </section>
  );
}
