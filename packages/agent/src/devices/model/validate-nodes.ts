import { isDnsSubdomain, isLabelName, isLabelValue, quote } from "@nodekeeper/core/lib";
import { type Device, isBeyondNode, type NodeSelector, type PoolFields } from "./model.ts";
import type { Report } from "./validate-capacity.ts";

const MOST_REQUIREMENTS = 64;
const MOST_VALUES = 256;
/** Operators of core/v1, with the numbers of values that they need. */
const operators: Readonly<Record<string, { from: number; to: number }>> = {
  In: { from: 1, to: MOST_VALUES },
  NotIn: { from: 1, to: MOST_VALUES },
  Exists: { from: 0, to: 0 },
  DoesNotExist: { from: 0, to: 0 },
  Gt: { from: 1, to: 1 },
  Lt: { from: 1, to: 1 },
};

/** Returns what is wrong with the nodes that a pool's devices can be used from; undefined if nothing is. */
export function problemOfPoolNodes(
  name: string,
  fields: PoolFields,
  nodeName: string,
): { field: string; message: string } | undefined {
  if (!isBeyondNode(fields)) return undefined;
  const { nodeSelector, allNodes, perDeviceNodeSelection } = fields;
  const set = [
    nodeSelector && "nodeSelector",
    allNodes && "allNodes",
    perDeviceNodeSelection && "perDeviceNodes",
  ];
  const names = set.filter((each) => each);
  if (names.length > 1) return { field: "nodes", message: `has more than one of ${names.join(", ")}` };
  if (name === "" || name === nodeName)
    return { field: "name", message: "a pool beyond the node needs a name that is not a node's" };
  if (nodeSelector) {
    let problem: { field: string; message: string } | undefined;
    checkNodeSelector(nodeSelector, "nodeSelector", (field, message) => {
      problem ??= { field, message };
    });
    return problem;
  }
  return undefined;
}

/** Checks the node settings of a device: exactly one in a pool with per-device node selection, otherwise none. */
export function checkNodesOfDevice(
  { nodeName, nodeSelector, allNodes }: Device,
  perDeviceNodeSelection: boolean,
  report: Report,
): void {
  const number = [nodeName, nodeSelector, allNodes].filter((each) => each !== undefined).length;
  if (!perDeviceNodeSelection) {
    if (number > 0) report("nodes", "must not be set: the device belongs to the nodes of its pool");
    return;
  }
  if (number !== 1) {
    report("nodes", `${number} of nodeName, nodeSelector and allNodes are set, exactly one is needed`);
    return;
  }
  if (nodeName !== undefined && !isDnsSubdomain(nodeName))
    report("nodeName", `${quote(nodeName)} is not a DNS subdomain`);
  if (nodeSelector) checkNodeSelector(nodeSelector, "nodeSelector", report);
}

// As the API server validates that of a ResourceSlice.
function checkNodeSelector({ nodeSelectorTerms: terms }: NodeSelector, path: string, report: Report): void {
  const [term] = terms;
  if (!term || terms.length > 1) {
    report(path, `has ${terms.length} terms, exactly one is needed`);
    return;
  }
  const { matchExpressions = [], matchFields = [] } = term;
  const number = matchExpressions.length + matchFields.length;
  if (number === 0 || number > MOST_REQUIREMENTS) {
    report(path, `has ${number} requirements, 1 to ${MOST_REQUIREMENTS} are allowed`);
    return;
  }
  for (const { key, operator, values = [] } of matchExpressions) {
    if (!isLabelName(key)) report(`${path}.matchExpressions`, `${quote(key)} is not a label name`);
    checkValues(operator, values, `${path}.matchExpressions[${key}]`, report);
    for (const value of values)
      if (!isLabelValue(value))
        report(`${path}.matchExpressions[${key}]`, `${quote(value)} is not a label value`);
  }
  for (const { key, operator, values = [] } of matchFields) {
    if (key !== "metadata.name") report(`${path}.matchFields`, `${quote(key)} is not "metadata.name"`);
    if (operator !== "In" && operator !== "NotIn")
      report(`${path}.matchFields`, `${quote(operator)} is not In or NotIn`);
    if (values.length !== 1)
      report(`${path}.matchFields`, `has ${values.length} values, exactly one is needed`);
  }
}

function checkValues(operator: string, values: readonly string[], field: string, report: Report): void {
  const room = Object.hasOwn(operators, operator) ? operators[operator] : undefined;
  if (!room) report(field, `${quote(operator)} is not one of ${Object.keys(operators).join(", ")}`);
  else if (values.length < room.from || values.length > room.to) {
    const allowed = room.from === room.to ? `${room.from}` : `${room.from} to ${room.to}`;
    report(field, `${operator} has ${values.length} values, ${allowed} are allowed`);
  }
}
