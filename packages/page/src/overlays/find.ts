/** Something that the page has a view of. */
export interface Item {
  /** What it is: "pod". */
  readonly kind: string;
  readonly name: string;
  /** Small print beside the name, which is searched too. */
  readonly note?: string | undefined;
  /** Where it is shown. */
  readonly address: string;
}

/** Items that have all words of a text, the best ones first. */
export interface Found {
  readonly items: readonly Item[];
  /** How many there are, of which `items` has the first. */
  readonly total: number;
}

const MOST = 50;
const BOUNDARY = /[^a-z\d]/;

/**
 * Returns the items whose name, kind and note contain all words of a text, ignoring case: at most 50. Names equal to
 * the text come first, then names that begin with it, have it at the start of a part, contain it, or do not. Equally
 * ranked items keep their order.
 */
export function findItems(all: readonly Item[], text: string): Found {
  const wanted = text.trim().toLowerCase();
  const words = wanted.split(/\s+/).filter(Boolean);
  const byRank: Item[][] = [[], [], [], [], []];
  let total = 0;
  for (const item of all) {
    const name = item.name.toLowerCase();
    const whole = `${name} ${item.kind} ${item.note?.toLowerCase() ?? ""}`;
    if (!words.every((word) => whole.includes(word))) continue;
    byRank[rankOf(name, wanted)]!.push(item);
    total++;
  }
  return { items: byRank.flat().slice(0, MOST), total };
}

function rankOf(name: string, wanted: string): number {
  const at = name.indexOf(wanted);
  if (at < 0) return 4;
  if (at === 0) return name.length === wanted.length ? 0 : 1;
  return BOUNDARY.test(name[at - 1]!) ? 2 : 3;
}
