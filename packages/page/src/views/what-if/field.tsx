import { Badge } from "../../parts/badge.tsx";
import { shown } from "../../text.ts";
import { itemsOf, toggled } from "./choices.ts";
import { COUNT, type Field } from "./fields.ts";

interface FieldProps {
  field: Field;
  /** The typed text, or the value in force. */
  text: string;
  inForce: string;
  /** The value in the recorded policy as text. Undefined if unknown. */
  recorded: string | undefined;
  problem: string | undefined;
  /** Items to choose from, for a list. */
  choices: readonly string[];
  /** @param text undefined: the value in force */
  onChange(text: string | undefined): void;
}

/**
 * A setting: its input, its description, and how it differs from the configuration in force and the recorded policy.
 */
export function FieldInput(props: FieldProps) {
  const { field, text, inForce, problem } = props;
  const id = `what-if-${field.name}`;
  const described = `${id}-about ${id}-state`;
  const isChanged = text !== inForce;
  return (
    <div class={`field${isChanged ? " changed" : ""}${problem ? " wrong" : ""}`}>
      <Input {...props} id={id} described={described} />
      {props.choices.length > 0 && <Choices {...props} />}
      <p id={`${id}-about`}>
        {field.setting.about} <code>{field.setting.path}</code>
      </p>
      <div id={`${id}-state`}>
        <State {...props} isChanged={isChanged} />
      </div>
    </div>
  );
}

function Input(props: FieldProps & { id: string; described: string }) {
  const { field, text, problem, onChange, id, described } = props;
  const common = { id, "aria-describedby": described, name: field.name };
  if (field.unit === "") {
    return (
      <label for={id} class="yes-no">
        <input
          {...common}
          type="checkbox"
          checked={text === "true"}
          onChange={(event) => onChange(String(event.currentTarget.checked))}
        />{" "}
        <b>{field.label}</b>
      </label>
    );
  }
  return (
    <>
      <label for={id}>
        <b>{field.label}</b> <small>{field.unit}</small>
      </label>
      <input
        {...common}
        type="text"
        inputMode={field.unit === COUNT ? "numeric" : "text"}
        autoComplete="off"
        autoCapitalize="off"
        spellcheck={false}
        value={text}
        aria-invalid={problem !== undefined}
        onInput={(event) => onChange(event.currentTarget.value)}
      />
    </>
  );
}

// In addition to typing, because the names are known.
function Choices({ field, text, choices, onChange }: FieldProps) {
  const items = itemsOf(text);
  return (
    <fieldset class="choices">
      <legend class="unseen">{field.label}</legend>
      {choices.map((choice) => (
        <label key={choice}>
          <input
            type="checkbox"
            checked={items.includes(choice)}
            onChange={() => onChange(toggled(text, choice))}
          />{" "}
          {choice === "*" ? "* (all)" : shown(choice, 100)}
        </label>
      ))}
    </fieldset>
  );
}

function State(props: FieldProps & { isChanged: boolean }) {
  const { field, text, inForce, recorded, problem, isChanged, onChange } = props;
  const isRecordedInForce = recorded === inForce;
  const differs = recorded !== undefined && recorded !== text && !problem;
  return (
    <>
      {problem && (
        <p class="problem" role="alert">
          Not valid: {shown(problem, 600)}. Replayed with the value in force.
        </p>
      )}
      {isChanged && (
        <p>
          <Badge>changed</Badge> in force{isRecordedInForce && " and recorded"}:{" "}
          <Value text={inForce} field={field} />{" "}
          <button type="button" onClick={() => onChange(undefined)} aria-label={`Reset ${field.label}`}>
            Reset
          </button>
        </p>
      )}
      {differs && !isRecordedInForce && (
        <p>
          Differs from the recorded policy: <Value text={recorded} field={field} />{" "}
          <button type="button" onClick={() => onChange(recorded)} aria-label={`${field.label} as recorded`}>
            As recorded
          </button>
        </p>
      )}
    </>
  );
}

function Value({ text, field }: { text: string; field: Field }) {
  if (field.unit === "") return <b>{text === "true" ? "yes" : "no"}</b>;
  return text === "" ? <i>none</i> : <code>{shown(text, 300)}</code>;
}
