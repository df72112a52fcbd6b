const label = "[a-z0-9](?:[-a-z0-9]*[a-z0-9])?";
const dnsLabel = new RegExp(`^${label}$`);
const dnsSubdomain = new RegExp(`^${label}(?:\\.${label})*$`);
const labelText = /^[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?$/;

/** RFC 1123 label: at most 63 lower case letters, digits and '-', with a letter or digit at both ends. */
export function isDnsLabel(text: string): boolean {
  return text.length <= 63 && dnsLabel.test(text);
}

/** RFC 1123 subdomain: lower case labels joined by '.', at most 253 characters. */
export function isDnsSubdomain(text: string): boolean {
  return text.length <= 253 && dnsSubdomain.test(text);
}

/**
 * A key of labels, annotations, taints, conditions and extended resources: at most 63 characters, optionally prefixed
 * by "<DNS subdomain>/". Source: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/
 */
export function isLabelName(text: string): boolean {
  const slash = text.indexOf("/");
  const name = text.slice(slash + 1);
  return (slash < 0 || isDnsSubdomain(text.slice(0, slash))) && name.length <= 63 && labelText.test(name);
}

/** A label value: empty, or like a label key without a prefix. */
export function isLabelValue(text: string): boolean {
  return text === "" || (text.length <= 63 && labelText.test(text));
}
