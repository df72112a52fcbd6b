import type { ApiAnswers } from "@nodekeeper/api/openapi";
import { useExport } from "../../export/exports.ts";
import { Badge } from "../../parts/badge.tsx";
import { Remedy } from "../../parts/remedy.tsx";
import { Section } from "../../parts/section.tsx";
import { shown } from "../../text.ts";

type Check = ApiAnswers["node"]["health"]["checks"][number];

/** Health checks that fail or pass with a warning, each with its remedy. */
export function HealthSection({ node: { health } }: { node: ApiAnswers["node"] }) {
  const shownChecks = health.checks
    .filter(({ ok, warning }) => !ok || warning !== undefined)
    .sort((a, b) => Number(a.ok) - Number(b.ok));
  const failing = shownChecks.filter(({ ok }) => !ok).length;
  useExport("Health", () =>
    shownChecks.map(({ name, ok, message, warning, errorId }) => ({
      Check: shown(name),
      State: ok ? "warning" : "fails",
      Message: shown(warning ?? message, 1_000),
      "Error ID": errorId ?? null,
    })),
  );
  return (
    <Section
      title="Health"
      remark={`${health.checks.length - failing} of ${health.checks.length} checks pass`}
    >
      {shownChecks.length === 0 ? (
        <p>All checks pass.</p>
      ) : (
        <ul class="now-checks">
          {shownChecks.map((check) => (
            <CheckItem key={check.name} check={check} />
          ))}
        </ul>
      )}
    </Section>
  );
}

function CheckItem({ check: { name, kind, ok, message, warning, errorId } }: { check: Check }) {
  return (
    <li>
      <p>
        <Badge tone={ok ? "warn" : "bad"}>{ok ? "warning" : "fails"}</Badge> <b>{shown(name)}</b>:{" "}
        {shown(warning ?? message, 1_000)} {errorId !== undefined && <small>{shown(errorId)}</small>}
      </p>
      {!ok && kind === "live" && <p>While this check fails the kubelet restarts the agent's container.</p>}
      <Remedy id={errorId} fallback={ok ? undefined : "The agent's log has more about it."} />
    </li>
  );
}
