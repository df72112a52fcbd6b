import { quote } from "../lib/index.ts";
import { isDnsSubdomain, isLabelName, isLabelValue } from "./field-names.ts";
import type { NodeSelector, NodeSelectorRequirement } from "./model.ts";
import type { Report } from "./validate-capacity.ts";

/** core/v1's rules for a node selector. */
export function checkNodeSelector({ nodeSelectorTerms }: NodeSelector, report: Report): void {
  if (nodeSelectorTerms.length === 0) report("nodeSelector.nodeSelectorTerms", "must have a term");
  for (const [at, term] of nodeSelectorTerms.entries()) {
    const field = `nodeSelector.nodeSelectorTerms[${at}]`;
    for (const [index, requirement] of (term.matchExpressions ?? []).entries()) {
      checkExpression(requirement, `${field}.matchExpressions[${index}]`, report);
    }
    for (const [index, requirement] of (term.matchFields ?? []).entries()) {
      checkField(requirement, `${field}.matchFields[${index}]`, report);
    }
  }
}

function checkExpression(
  { key, operator, values = [] }: NodeSelectorRequirement,
  field: string,
  report: Report,
): void {
  if (!isLabelName(key)) report(`${field}.key`, `${quote(key)} is not a label name`);
  for (const [at, value] of values.entries()) {
    if (!isLabelValue(value)) report(`${field}.values[${at}]`, `${quote(value)} is not a label value`);
  }
  switch (operator) {
    case "In":
    case "NotIn":
      if (values.length === 0) report(`${field}.values`, `${operator} needs values`);
      break;
    case "Exists":
    case "DoesNotExist":
      if (values.length > 0) report(`${field}.values`, `${operator} takes no values`);
      break;
    case "Gt":
    case "Lt":
      if (values.length !== 1) report(`${field}.values`, `${operator} needs exactly one value`);
      break;
    default:
      report(`${field}.operator`, `${quote(operator)} is not an operator`);
  }
}

function checkField(
  { key, operator, values = [] }: NodeSelectorRequirement,
  field: string,
  report: Report,
): void {
  if (key !== "metadata.name") report(`${field}.key`, `${quote(key)} is not metadata.name`);
  if (operator !== "In" && operator !== "NotIn")
    report(`${field}.operator`, `${quote(operator)} is not In or NotIn`);
  if (values.length !== 1) report(`${field}.values`, "needs exactly one value");
  for (const [at, value] of values.entries()) {
    if (!isDnsSubdomain(value)) report(`${field}.values[${at}]`, `${quote(value)} is not a node name`);
  }
}
