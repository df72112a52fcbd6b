import type { ComponentChildren } from "preact";
import { Prose } from "./prose.tsx";
import { Remedy } from "./remedy.tsx";
import type { Answer } from "./use-answer.ts";

/** Shown while a view waits for a response. */
export function Waiting({ children }: { children: ComponentChildren }) {
  return (
    <p class="quiet" role="status">
      {children}
    </p>
  );
}

/** Why there is no response, or no newer one, and what to do about it. */
export function Problem({
  problem,
  children,
}: {
  problem: NonNullable<Answer<unknown>["problem"]>;
  children?: ComponentChildren;
}) {
  const { message, id } = problem;
  return (
    <div class="notice" role="status">
      <p>
        <b>
          <Prose text={`${capitalized(message)}.`} />
        </b>{" "}
        {children}
      </p>
      <Remedy id={id} />
    </div>
  );
}

function capitalized(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1).replace(/\.$/, "")}`;
}
