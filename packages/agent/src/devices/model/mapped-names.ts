import { hash } from "node:crypto";
import { isDnsLabel, isDnsSubdomain } from "@nodekeeper/core/lib";
import { isIdentifier } from "./field-names.ts";

/*
 * Maps names of one model to the grammar of another. A name that fits is unchanged. Any other name becomes its readable
 * part and a hash of the entire name. A name that fits but looks like such a result is hashed too, so that different
 * names never map to the same one, in any order.
 */

interface Grammar {
  fits(name: string): boolean;
  /** Returns the readable part: at most `longest` characters that the grammar allows before the separator. */
  readable(name: string, longest: number): string;
  longest: number;
  separator: string;
}

const HASH_LENGTH = 10;
// A hash starts with a letter, as a C identifier must, and always has this format.
const hashLook = /^h[0-9a-v]{9}$/;

const deviceGrammar: Grammar = {
  fits: isDnsLabel,
  readable: (name, longest) => trim(name.toLowerCase().replace(/[^a-z0-9]+/g, "-"), longest),
  longest: 63,
  separator: "-",
};

const identifierGrammar: Grammar = {
  fits: isIdentifier,
  readable: (name, longest) => {
    const text = name.replace(/[^A-Za-z0-9]+/g, "_").slice(0, longest);
    return /^[0-9]/.test(text) ? `_${text.slice(0, longest - 1)}` : text;
  },
  longest: 32,
  separator: "_",
};

const subdomainGrammar: Grammar = {
  fits: isDnsSubdomain,
  readable: (name, longest) => trim(name.toLowerCase().replace(/[^a-z0-9]+/g, "-"), longest),
  longest: 253,
  separator: "-",
};

/** Returns the DNS label for a device of the v1alpha2 model: "gpu-0" is unchanged, "gpu.0" becomes "gpu-0-h...". */
export function deviceNameOf(instanceName: string): string {
  return mapped(instanceName, deviceGrammar);
}

/** Returns the identifier, without a domain, for an attribute or capacity of the v1alpha2 model. */
export function identifierOf(attributeName: string): string {
  return mapped(attributeName, identifierGrammar);
}

/** Returns the DNS subdomain in the v1alpha2 model for an attribute, capacity or device of resource.k8s.io/v1. */
export function oldNameOf(name: string): string {
  return mapped(name, subdomainGrammar);
}

function mapped(name: string, grammar: Grammar): string {
  if (grammar.fits(name) && !looksMapped(name, grammar)) return name;
  const digest = shortHash(name);
  const readable = grammar.readable(name, grammar.longest - HASH_LENGTH - grammar.separator.length);
  return readable === "" ? digest : `${readable}${grammar.separator}${digest}`;
}

function looksMapped(name: string, { separator }: Grammar): boolean {
  const tail = name.slice(-HASH_LENGTH);
  return hashLook.test(tail) && (name.length === HASH_LENGTH || name.at(-HASH_LENGTH - 1) === separator);
}

/** Returns a 45-bit hash as lower case letters and digits, prefixed by "h". */
export function shortHash(text: string): string {
  const bits = BigInt(`0x${hash("sha256", text, "hex").slice(0, 16)}`) >> 19n;
  return `h${bits.toString(32).padStart(HASH_LENGTH - 1, "0")}`;
}

function trim(text: string, longest: number): string {
  return text.replace(/^-+/, "").slice(0, longest).replace(/-+$/, "");
}
