import type { EvictionPolicy } from "@nodekeeper/api/decide";
import { counted } from "@nodekeeper/api/wording";
import { useState } from "preact/hooks";
import { Badge } from "../../parts/badge.tsx";
import { FieldInput } from "./field.tsx";
import { type EditedPolicy, type FieldGroup, fieldGroups, recordedText } from "./fields.ts";

interface FormProps {
  typed: ReadonlyMap<string, string>;
  /** The texts of the configuration in force. */
  inForce: ReadonlyMap<string, string>;
  edited: EditedPolicy;
  /** The policy of the last replayed round. */
  recorded: EvictionPolicy | undefined;
  /** Names of registered eviction plugins. */
  plugins: readonly string[];
  /** @param text undefined: the value in force */
  onChange(name: string, text: string | undefined): void;
  onReset(): void;
}

/** All settings of the policy. */
export function PolicyForm(props: FormProps) {
  const { typed, edited, onReset } = props;
  return (
    <form class="card" aria-label="Policy" onSubmit={(event) => event.preventDefault()}>
      <h2>Policy</h2>
      <p>
        {typed.size === 0
          ? "As in the configuration in force."
          : `${counted(edited.changed.length, "setting")} changed from the configuration in force.`}{" "}
        <button type="button" disabled={typed.size === 0} onClick={onReset}>
          Reset all
        </button>
      </p>
      {fieldGroups.map((group) => (
        <Group key={group.title} group={group} {...props} />
      ))}
    </form>
  );
}

// On a wide screen all groups are open; on a phone they are opened on demand.
const WIDE = "(min-width: 60rem)";

function Group(props: FormProps & { group: FieldGroup }) {
  const { group, typed, inForce, edited, recorded, plugins, onChange } = props;
  const changed = group.fields.filter(({ name }) => typed.has(name)).length;
  const [isOpen, setOpen] = useState(() => changed > 0 || matchMedia(WIDE).matches);
  return (
    <details open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <h3>{group.title}</h3> {changed > 0 && <Badge>{changed} changed</Badge>}
      </summary>
      {group.fields.map((field) => (
        <FieldInput
          key={field.name}
          field={field}
          text={typed.get(field.name) ?? inForce.get(field.name)!}
          inForce={inForce.get(field.name)!}
          recorded={recorded && recordedText(field, recorded)}
          problem={edited.problems.get(field.name)}
          choices={choicesOf(field.name, plugins)}
          onChange={(text) => onChange(field.name, text)}
        />
      ))}
    </details>
  );
}

function choicesOf(name: string, plugins: readonly string[]): readonly string[] {
  if (name === "dryRunPlugins" || name === "fallbackPlugins") return ["*", ...plugins];
  return name === "taintEffects" ? ["NoSchedule", "PreferNoSchedule", "NoExecute"] : [];
}
