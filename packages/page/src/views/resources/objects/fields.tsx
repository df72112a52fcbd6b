import { useState } from "preact/hooks";
import { PluginLink, PluginLinks } from "../../../parts/plugin-links.tsx";
import { Table } from "../../../parts/table.tsx";
import { useDeferred } from "../../../parts/use-deferred.ts";
import { shown } from "../../../text.ts";
import { type Field, type PublishedObject, searchFields, valueText } from "./objects.ts";
import { useFields } from "./use-fields.ts";

const PAGE = 100;
/** Maximum number of fields of an object in the API. */
const ALL = 20_000;

/** The fields of an object, with the plugin that reported each. A search reads all of them. */
export function Fields({ object }: { object: PublishedObject }) {
  const [search, setSearch] = useState("");
  const [most, setMost] = useState(PAGE);
  const wanted = useDeferred(search, 200);
  const version = `${object.writes} ${object.lastWriteAt}`;
  const { value, problem } = useFields(object.object, wanted === "" ? most : ALL, version);
  const isWhole = value?.isWhole ?? false;
  const found = value && searchFields(value.fields, wanted);
  return (
    <>
      <h3>Fields</h3>
      <p>
        <label>
          Search fields{" "}
          <input
            type="search"
            value={search}
            placeholder="path, value or plugin"
            onInput={({ currentTarget }) => {
              setSearch(currentTarget.value);
              setMost(PAGE);
            }}
          />
        </label>
      </p>
      {problem && (
        <p role="alert">
          Fields can't be read: {shown(problem.message, 500)}. What is shown is as of before.
        </p>
      )}
      <p role="status">{statusText(found?.length, wanted, isWhole)}</p>
      {found && found.length > 0 && (
        <div class="fields">
          <Table
            label="Fields of the object"
            columns={["Field", "Value", "Reported by"]}
            rows={found.slice(0, most).map(rowOf)}
          />
        </div>
      )}
      {found && (found.length > most || !isWhole) && (
        <button type="button" onClick={() => setMost(most + PAGE)}>
          Show more
        </button>
      )}
    </>
  );
}

function rowOf({ path, value, plugin, others }: Field) {
  return {
    key: path,
    cells: [
      shown(path, 1_000),
      <code title={shown(value, 300)}>
        <data value={shown(value, 300)}>{shown(valueText({ path, value }), 300)}</data>
      </code>,
      <>
        <PluginLink name={plugin} />
        {others.length > 0 && (
          <small>
            {" "}
            also by <PluginLinks names={others} />, not used
          </small>
        )}
      </>,
    ],
  };
}

function statusText(count: number | undefined, search: string, isWhole: boolean): string {
  if (count === undefined) return "Loading the fields.";
  if (count === 0) return search ? "No field has that." : "The object has no fields of plugins.";
  const fields = count === 1 ? "1 field" : `${count} fields`;
  return search ? `${fields} found.` : `${fields}${isWhole ? "" : " of more"}.`;
}
