import { addressOf } from "../address.ts";
import { shown } from "../text.ts";

/** Names of plugins, each linked to the plugin. */
export function PluginLinks({ names }: { names: readonly string[] }) {
  if (names.length === 0) return <>no plugin</>;
  return (
    <>
      {names.map((name, place) => (
        <span key={name}>
          {place > 0 && ", "}
          <a href={addressOf("plugins", [name])}>{shown(name)}</a>
        </span>
      ))}
    </>
  );
}
