import { addressOf } from "../../../address.ts";
import { Waiting } from "../../../parts/notice.tsx";
import { PluginLinks } from "../../../parts/plugin-links.tsx";
import { Age } from "../../../parts/time.tsx";
import { shown } from "../../../text.ts";
import type { ViewProps } from "../../../view-props.ts";
import { Fields } from "./fields.tsx";
import { kindName, type PublishedObject, troubleCount } from "./objects.ts";
import { ObjectTrouble } from "./trouble.tsx";

/** Published objects: which plugin reported each field, what is disputed, and what was refused. */
export function ObjectsTab({ live: { objects, node }, address }: ViewProps) {
  if (!objects) return <Waiting>Waiting for the agent's first answer.</Waiting>;
  const wanted = address.query.get("object") ?? objects[0]?.object;
  return (
    <>
      {node?.objects.problem && (
        <p class="lost">Something can't be published: {shown(node.objects.problem, 1_000)}</p>
      )}
      {objects.length === 0 && (
        <p>
          Nothing is published: no plugin has reported anything yet. What a reporter reports appears here
          within seconds; see <a href={addressOf("plugins")}>Plugins</a>.
        </p>
      )}
      {objects.map((object) => (
        <PublishedSection key={object.object} object={object} isOpen={object.object === wanted} />
      ))}
    </>
  );
}

function PublishedSection({ object, isOpen }: { object: PublishedObject; isOpen: boolean }) {
  const { object: kind, plugins, writes, lastWriteAt, pending } = object;
  const troubles = troubleCount(object);
  return (
    <section class="card published" aria-label={shown(kindName(kind))}>
      <h2>
        {shown(kindName(kind))} <small>{shown(kind)}</small>
      </h2>
      <p>
        Reported by <PluginLinks names={plugins} />.{" "}
        {lastWriteAt === undefined ? (
          "Not written yet"
        ) : (
          <>
            Last written <Age since={lastWriteAt} />
          </>
        )}
        , {writes} {writes === 1 ? "write" : "writes"} since the agent's start
        {pending ? "; changes wait to be written" : ""}.{" "}
        {troubles === 0 && <span class="good">✓ Nothing is disputed or refused.</span>}
      </p>
      <ObjectTrouble object={object} />
      {isOpen ? (
        <Fields object={object} />
      ) : (
        <p>
          <a href={addressOf("resources", ["objects"], { object: kind })}>Show its fields</a>
        </p>
      )}
    </section>
  );
}
