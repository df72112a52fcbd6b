import { addressOf } from "../address.ts";
import { Joined } from "./joined.tsx";
import { Name } from "./name.tsx";

/** A plugin's name, linked to the plugin. */
export function PluginLink({ name }: { name: string }) {
  return (
    <a href={addressOf("plugins", [name])}>
      <Name text={name} />
    </a>
  );
}

/** Names of plugins, each linked to the plugin. */
export function PluginLinks({ names }: { names: readonly string[] }) {
  if (names.length === 0) return <>no plugin</>;
  return <Joined items={names.map((name) => <PluginLink name={name} />)} />;
}
