import { hash } from "node:crypto";
import { isDnsLabel, isDnsSubdomain, isIdentifier } from "./field-names.ts";

/*
 * Names of one model in the grammar of another. A name that fits stays; any other becomes as much of it as fits and a
 * hash of the whole. A name that fits but looks like such a result is hashed too, so that no two names ever become
 * one, whatever else there is and in whatever order it comes.
 */

interface Grammar {
  fits(name: string): boolean;
  /** The readable part, at most `longest` characters that the grammar allows before the separator. */
  readable(name: string, longest: number): string;
  longest: number;
  separator: string;
}

const HASH_LENGTH = 10;
// A hash always begins with a letter, as a C identifier must, and has exactly this look.
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

/** The DNS label that a device of the old model is published under: "gpu-0" stays, "gpu.0" becomes "gpu-0-h...". */
export function deviceNameOf(instanceName: string): string {
  return mapped(instanceName, deviceGrammar);
}

/** The identifier, without a domain, of an attribute or capacity of the old model. */
export function identifierOf(attributeName: string): string {
  return mapped(attributeName, identifierGrammar);
}

/** The DNS subdomain that an attribute, a capacity or a device of resource.k8s.io/v1 has in the old model. */
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

/** 45 bits in lower case letters and digits, after the letter "h". */
export function shortHash(text: string): string {
  const bits = BigInt(`0x${hash("sha256", text, "hex").slice(0, 16)}`) >> 19n;
  return `h${bits.toString(32).padStart(HASH_LENGTH - 1, "0")}`;
}

function trim(text: string, longest: number): string {
  return text.replace(/^-+/, "").slice(0, longest).replace(/-+$/, "");
}
